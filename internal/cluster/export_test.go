package cluster

// OwnsShard is for tests.
func (c *Cluster) OwnsShard(shard int) bool { return c.ownsShard(shard) }

// ShareOf is for tests.
var ShareOf = shareOf

// StopBeats makes the node look as if its process hung.
func (c *Cluster) StopBeats() {
	c.stop()
	c.running.Wait()
}
