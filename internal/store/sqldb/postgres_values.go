package sqldb

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// arguments are values as PostgreSQL gets them: flags are numbers.
func arguments(args []any) ([]any, error) {
	values := make([]any, len(args))
	for i, arg := range args {
		value, err := driver.DefaultParameterConverter.ConvertValue(arg)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		switch v := value.(type) {
		case bool:
			value = int64(0)
			if v {
				value = int64(1)
			}
		case string:
			value = storable(v)
		case []byte:
			if v == nil {
				value = nil
			}
		case time.Time:
			return nil, errors.New("a time is stored as a number")
		}
		values[i] = value
	}
	return values, nil
}

// storable is a text without what PostgreSQL refuses in one: a zero byte, and bytes that are not UTF-8. Names and texts from a
// network may contain both.
func storable(text string) string {
	if strings.IndexByte(text, 0) < 0 && utf8.ValidString(text) {
		return text
	}
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), string(utf8.RuneError))
}

// postgresRows are the rows of a result.
type postgresRows struct {
	rows pgx.Rows
	end  func() // releases the connection; nil: it is done
}

func (r *postgresRows) next() (bool, error) {
	if r.rows.Next() {
		return true, nil
	}
	return false, r.rows.Err()
}

func (r *postgresRows) scan(into []any) error {
	values, err := r.rows.Values()
	if err != nil {
		return err
	}
	if len(values) != len(into) {
		return fmt.Errorf("%d variables for %d columns", len(into), len(values))
	}
	for i, value := range values {
		if err := assign(into[i], value); err != nil {
			return fmt.Errorf("column %d: %w", i+1, err)
		}
	}
	return nil
}

// close ends the rows. It may be called twice.
func (r *postgresRows) close() error {
	r.rows.Close()
	if r.end != nil {
		r.end()
		r.end = nil
	}
	return r.rows.Err()
}

// assign sets a variable to a value of the database, by the rules that hold for SQLite too.
func assign(into, value any) error {
	switch v := value.(type) {
	case int32:
		value = int64(v)
	case int16:
		value = int64(v)
	case pgtype.Numeric: // the sum of numbers
		n, err := v.Int64Value()
		if err != nil {
			return err
		}
		value = n.Int64
	case bool:
		value = int64(0)
		if v {
			value = int64(1)
		}
	}
	switch into := into.(type) {
	case *any:
		*into = value
		return nil
	case *[]byte:
		switch v := value.(type) {
		case nil:
			*into = nil
		case []byte:
			*into = v
		case string:
			*into = []byte(v)
		default:
			return fmt.Errorf("a %T for a []byte", value)
		}
		return nil
	}
	if value == nil {
		return fmt.Errorf("NULL for a %T", into)
	}
	v := reflect.ValueOf(into).Elem()
	switch value := value.(type) {
	case int64:
		switch v.Kind() {
		case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
			v.SetInt(value)
			return nil
		case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
			v.SetUint(uint64(value))
			return nil
		case reflect.Bool:
			v.SetBool(value != 0)
			return nil
		}
	case string:
		if v.Kind() == reflect.String {
			v.SetString(value)
			return nil
		}
	}
	return fmt.Errorf("a %T for a %T", value, into)
}
