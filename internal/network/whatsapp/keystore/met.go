package keystore

import "context"

// People are the contacts without a visible number that a device met, by LID.
type People interface {
	MetLID(ctx context.Context, lid string) (bool, error)
	PutMetLIDs(ctx context.Context, lids []string) error
}

var _ People = (*device)(nil)

func (d *device) MetLID(ctx context.Context, lid string) (bool, error) {
	value, err := d.get(ctx, metKind, lid)
	return value != nil, err
}

func (d *device) PutMetLIDs(ctx context.Context, lids []string) error {
	var fresh []change
	for _, lid := range lids {
		met, err := d.MetLID(ctx, lid)
		if err != nil {
			return err
		}
		if !met {
			fresh = append(fresh, change{key{d.id, metKind, lid}, []byte{}})
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	return d.put(ctx, fresh...)
}
