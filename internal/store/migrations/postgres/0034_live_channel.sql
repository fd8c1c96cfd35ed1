-- Whether there is a channel on a real network is asked when a request names no channel.
CREATE INDEX channel_live ON channel (id) WHERE network <> 'sandbox';
