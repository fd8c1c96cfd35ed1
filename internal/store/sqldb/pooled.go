package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"sync"
)

// pooled runs statements on any free connection of a pool.
type pooled struct {
	rewrite func(string) string
	db      *sql.DB

	mu     sync.RWMutex
	stmts  map[string]*sql.Stmt
	closed bool
}

func newPooled(db *sql.DB, rewrite func(string) string) *pooled {
	return &pooled{rewrite: rewrite, db: db, stmts: map[string]*sql.Stmt{}}
}

func (p *pooled) exec(query string, args []any) (sql.Result, error) {
	stmt, err := p.prepare(query)
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(context.Background(), args...)
}

func (p *pooled) query(query string, args []any) (Rows, error) {
	stmt, err := p.prepare(query)
	if err != nil {
		return nil, err
	}
	rows, err := stmt.QueryContext(context.Background(), args...)
	if err != nil {
		return nil, err // not a nil pointer in an interface
	}
	return rows, nil
}

func (p *pooled) queryRow(query string, args, into []any) error {
	stmt, err := p.prepare(query)
	if err != nil {
		return err
	}
	return stmt.QueryRowContext(context.Background(), args...).Scan(into...)
}

func (p *pooled) prepare(query string) (*sql.Stmt, error) {
	p.mu.RLock()
	stmt, ok := p.stmts[query]
	p.mu.RUnlock()
	if ok {
		return stmt, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if stmt, ok := p.stmts[query]; ok {
		return stmt, nil
	}
	if p.closed {
		return nil, unavailable(errClosed)
	}
	stmt, err := p.db.PrepareContext(context.Background(), p.rewrite(query))
	if err != nil {
		return nil, err
	}
	p.stmts[query] = stmt
	return stmt, nil
}

func (p *pooled) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	var errs []error
	for _, stmt := range p.stmts {
		errs = append(errs, stmt.Close())
	}
	clear(p.stmts)
	return errors.Join(append(errs, p.db.Close())...)
}
