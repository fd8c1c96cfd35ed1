package keystore

import "context"

// GroupKeys is implemented by the SenderKeys of a device.
type GroupKeys interface {
	// KeyHolders returns what PutKeyHolders stored: which devices have this device's own sender key of a group. nil: nothing.
	KeyHolders(ctx context.Context, group string) ([]byte, error)
	PutKeyHolders(ctx context.Context, group string, holders []byte) error
}

var _ GroupKeys = (*device)(nil)

func (d *device) KeyHolders(ctx context.Context, group string) ([]byte, error) {
	return d.get(ctx, keyHoldersKind, group)
}

func (d *device) PutKeyHolders(ctx context.Context, group string, holders []byte) error {
	return d.put(ctx, change{key{d.id, keyHoldersKind, group}, holders})
}
