package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/app"
	"parley/internal/client"
)

func (c *cli) backup() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write a backup into one file, while the server runs",
		Long: `Write database, files and key into one tar file, while the server runs. Anyone who has the file can use your
accounts: store it safely. FILE may be - for stdout. Messages of the sandbox's simulated phones are not included.
Files that --media stores outside the data directory are not included either.`,
		Example: `  parley backup parley-$(date +%F).tar
  parley backup - | age -r age1… > parley.tar.age`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.onPostgres() {
				return fail(exitUsage, app.BackupOfNode)
			}
			if _, running := c.dir().Running(); !running && !c.dir().Exists() {
				return c.noData()
			}
			bar := c.newProgress("backup")
			defer bar.Done()
			if args[0] == "-" {
				if c.outTerminal {
					return fail(exitUsage, "cannot write a backup to a terminal. Give a file, or a pipe")
				}
				defer c.sayFilesElsewhere(c.filesElsewhere())
				return c.writeBackup(cmd.Context(), c.out, bar)
			}
			files := c.filesElsewhere()
			size, err := app.SaveBackup(args[0], force, func(w io.Writer) error { return c.writeBackup(cmd.Context(), w, bar) })
			if errors.Is(err, fs.ErrExist) && force {
				return fail(exitUsage, "%s is not a regular file, so --force does not replace it. Give another name", args[0])
			}
			if errors.Is(err, fs.ErrExist) {
				return fail(exitUsage, "%s already exists. Give another name, or pass --force", args[0])
			}
			if errors.Is(err, fs.ErrNotExist) {
				return fail(exitUsage, "folder %s not found", filepath.Dir(args[0]))
			}
			if err != nil {
				return err
			}
			bar.Done()
			if c.json {
				written := map[string]any{"file": args[0], "size": size}
				if files != "" {
					written["without_files_in"] = files
				}
				return c.printJSON(written)
			}
			c.hint("wrote %s, %d bytes", args[0], size)
			c.sayFilesElsewhere(files)
			return nil
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "replace an existing file, once the backup is complete")
	settingFlags(cmd.Flags(), keyFiles)
	return cmd
}

// filesElsewhere is where the files of messages are if that is not the data directory; else empty.
func (c *cli) filesElsewhere() string {
	if running, ok := c.dir().Running(); ok && running.URL != "" {
		return running.Media
	}
	return app.Config{DataDir: c.dir(), Media: c.media()}.MediaElsewhere()
}

// sayFilesElsewhere says what a backup does not contain, also without a terminal.
func (c *cli) sayFilesElsewhere(files string) {
	if files != "" && !c.quiet {
		fmt.Fprintf(c.err, "The files of messages are in %s and are not part of the backup. Back them up there.\n", files)
	}
}

// writeBackup requests a backup from the running server; with no server it makes one itself.
func (c *cli) writeBackup(ctx context.Context, w io.Writer, bar *progress) error {
	running, ok := c.dir().Running()
	if !ok || running.URL == "" {
		return app.BackupOffline(ctx, c.dir(), c.warnings(), w, bar.Set)
	}
	return c.onRunning(ctx, running, func(ctx context.Context, api *client.Client) error {
		resp, err := api.Open(ctx, http.MethodGet, client.Path("backup", "now"), nil, nil, nil)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if _, err = io.Copy(w, &countedReader{Reader: resp.Body, bar: bar, size: -1}); err != nil {
			return &client.UnreachableError{Base: api.Base, Err: err}
		}
		return nil
	})
}

func (c *cli) restore() *cobra.Command {
	var yes, revoke bool
	var before string
	cmd := &cobra.Command{
		Use:   "restore [FILE]",
		Short: "Replace the data with a backup",
		Long: `Replace the data with a backup. The server must not be running. The backup is checked first, and the current data
is moved to a folder in the data directory. FILE may be - for stdin.

A restore ends console sessions, sign-in and pairing links, one-time codes, login links, and requests with an
Idempotency-Key that had no response yet. As far as the current database can be read, tokens revoked and signing
secrets rotated since the backup stay so, tokens keep a lower role that they got since, and newer entries of the
audit log are kept.

With --database, do the same for a PostgreSQL database that you restored with pg_restore or other tools, before you
start nodes on it. --before names the database that it replaces. If that is lost, --revoke-tokens revokes every token,
because nobody knows which ones were revoked since the backup.`,
		Example: `  parley restore parley-2026-11-15.tar
  parley restore --database postgres://parley@db.example.com/restored --before postgres://parley@db.example.com/parley`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.onPostgres() {
				return c.restorePostgres(cmd.Context(), args, before, revoke, yes)
			}
			if len(args) == 0 {
				return fail(exitUsage, "FILE is missing: the backup, or - for stdin")
			}
			from, size, err := c.openBackup(args[0])
			if err != nil {
				return err
			}
			defer from.Close()
			if c.dir().Exists() {
				if err := c.confirm(cmd.Context(), yes, fmt.Sprintf("This replaces the data in %s", c.dir()), "restore"); err != nil {
					return err
				}
			}
			bar := c.newProgress("restore")
			done, err := app.Restore(cmd.Context(), c.dir(), &countedReader{Reader: from, bar: bar, size: size}, c.warnings())
			bar.Done()
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(restoredJSON(string(c.dir()), done))
			}
			c.printRestored(string(c.dir()), done)
			if files := c.filesElsewhere(); files != "" && done.Files > 0 {
				fmt.Fprintf(c.out, "The backup has %s of messages, which are in %s now. Copy them to %s.\n", count(done.Files, "file"),
					c.dir().Media(), files)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	cmd.Flags().StringVar(&before, "before", "", "with --database: the PostgreSQL database that it replaces")
	cmd.Flags().BoolVar(&revoke, "revoke-tokens", false, "with --database: the database before is lost, so revoke every token")
	settingFlags(cmd.Flags(), keyFiles, keyDatabase, keySecretKey)
	return cmd
}

// restorePostgres makes a restored PostgreSQL database safe to use.
func (c *cli) restorePostgres(ctx context.Context, args []string, before string, revoke, yes bool) error {
	database := c.set.text(keyDatabase)
	switch {
	case len(args) > 0:
		return fail(exitUsage, app.RestoreOfNode)
	case (before == "") == !revoke:
		return fail(exitUsage, "Name the database before the restore with --before. If it is lost, use --revoke-tokens: every token is revoked")
	case before == database:
		return fail(exitUsage, "--before must be another database: what was revoked since the backup is known only there")
	}
	question := fmt.Sprintf("This ends sessions, links and open codes in %s", app.ShownDatabase(database))
	if revoke {
		question += " and revokes every token"
	}
	if err := c.confirm(ctx, yes, question, "restore"); err != nil {
		return err
	}
	config := app.Config{DataDir: c.dir(), Database: database, SecretKeyFile: c.set.text(keySecretKey)}
	done, err := app.RestorePostgres(ctx, config, before, c.warnings())
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(restoredJSON(app.ShownDatabase(database), done))
	}
	c.printRestored(app.ShownDatabase(database), done)
	return nil
}

func (c *cli) printRestored(where string, r app.Restored) {
	say := func(format string, args ...any) { fmt.Fprintf(c.out, format+"\n", args...) }
	say("Restored %s as of %s.", where, when(r.BackupAt))
	if r.Before != "" {
		say("The data before it is in %s. Delete it when you do not need it.", r.Before)
	}
	e := r.Ended
	say("Ended: console sessions %d, links to sign in or to pair %d, one-time codes %d, login links %d, requests without a response %d.",
		e.Sessions, e.Tickets, e.Codes, e.LoginLinks, e.Keys)
	for _, t := range e.Revoked {
		say("Token %s (%s) stays revoked.", t.ID, tokenOwner(t))
	}
	for _, t := range e.Lowered {
		say("Token %s (%s) stays limited: role %s, expires %s.", t.ID, tokenOwner(t), cmp.Or(t.Role, "-"), cmp.Or(when(t.ExpiresAt), "never"))
	}
	for _, id := range e.Retired {
		say("The signing key %s stays retired.", id)
	}
	if e.Audit > 0 {
		say("Entries of the audit log since the backup: %d are kept.", e.Audit)
	}
	for _, owner := range e.Rotated {
		say("The signing secret of %s stays the present one.", owner)
	}
	for _, t := range r.Back {
		say("Token %s (%s) is valid again: the present database did not have it. To revoke it: parley token revoke %s", t.ID, tokenOwner(t), t.ID)
	}
	if !r.Compared && len(e.Revoked) == 0 {
		say("There was no database to compare with: tokens revoked and secrets rotated since the backup are as in the backup. " +
			"See them with: parley token list")
	}
}

func tokenOwner(t parley.Token) string {
	return strings.TrimSpace(strings.Join([]string{string(t.Kind), string(t.Channel), t.Name}, " "))
}

func restoredJSON(where string, r app.Restored) any {
	ids := func(tokens []parley.Token) []parley.TokenID {
		list := []parley.TokenID{}
		for _, t := range tokens {
			list = append(list, t.ID)
		}
		return list
	}
	e := r.Ended
	return map[string]any{
		"data": where, "backup_at": parley.Stamp(r.BackupAt), "before": r.Before, "compared": r.Compared,
		"ended": map[string]int64{"console_sessions": e.Sessions, "links": e.Tickets, "codes": e.Codes,
			"login_links": e.LoginLinks, "requests": e.Keys},
		"tokens_revoked": ids(e.Revoked), "tokens_lowered": ids(e.Lowered), "tokens_back": ids(r.Back), "audit_kept": e.Audit,
		"keys_retired": append([]string{}, e.Retired...), "secrets_rotated": append([]parley.SecretOwner{}, e.Rotated...),
	}
}

// openBackup opens a backup file or stdin. The size is 0 if it is not known.
func (c *cli) openBackup(path string) (io.ReadCloser, int64, error) {
	if path == "-" {
		return io.NopCloser(c.in), 0, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, fail(exitUsage, "open the backup: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("open the backup: %w", err)
	}
	return f, info.Size(), nil
}

type countedReader struct {
	io.Reader
	bar  *progress
	size int64 // below zero: unknown
	done int64
}

func (r *countedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.done += int64(n)
	if r.size >= 0 {
		r.size = max(r.size, r.done)
	}
	r.bar.Set(r.done, r.size)
	return n, err
}

func (c *cli) migrate() *cobra.Command {
	var to string
	var reopen bool
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Migrate the database to the version of this program",
		Long: `Migrate the database to the version of this program, after copying it to parley.db.before-vN. The server must not
be running. A server migrates by itself when it starts.

With --to, copy the data of the data directory into an empty PostgreSQL database, or back into an empty data directory
with "--to file". Copy secret.key and the files of messages (media) yourself. The copied file is marked as moved, so no
server starts on it until --reopen removes the mark.`,
		Example: `  parley migrate
  parley migrate --data /var/lib/parley --to 'postgres://parley@db.example.com/parley?sslmode=verify-full'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if to != "" {
				return c.migrateTo(cmd.Context(), to)
			}
			if c.onPostgres() {
				return fail(exitUsage, app.MigrateOfNode)
			}
			if !c.dir().Exists() {
				return c.noData()
			}
			from, to, copied, err := app.Migrate(cmd.Context(), c.dir(), reopen, c.warnings())
			if err != nil {
				return err
			}
			if copied != "" {
				c.hint("Migrated from version %d to %d. A copy of the old database is %s: delete it when you do not need it", from, to, copied)
			}
			return c.done("%s is up to date", c.dir().Database())
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "an empty PostgreSQL database to copy to, or \"file\": copy from --database to the data directory")
	cmd.Flags().BoolVar(&reopen, "reopen", false, "use the file again after its data was moved to PostgreSQL, without what happened since")
	oneFlag(cmd, "to", "reopen")
	settingFlags(cmd.Flags(), keyDatabase)
	return cmd
}

// migrateTo copies the data into another database.
func (c *cli) migrateTo(ctx context.Context, to string) error {
	database := c.set.text(keyDatabase)
	switch {
	case to == "file" && database == "":
		return fail(exitUsage, "Name the PostgreSQL database to copy from with --database")
	case to == "file":
		to = ""
	case database != "":
		return fail(exitUsage, "The data is in PostgreSQL already. To copy it into a data directory, use: --to file")
	case !strings.HasPrefix(to, "postgres://") && !strings.HasPrefix(to, "postgresql://"):
		return fail(exitUsage, "--to must be the address of a PostgreSQL database, such as postgres://parley@db.example.com/parley, or file")
	case !c.dir().Exists():
		return c.noData()
	}
	rows, err := app.MigrateTo(ctx, c.dir(), database, to, c.warnings())
	if err != nil {
		return err
	}
	if database == "" {
		c.hint("%s is marked as moved, and no server starts on it. Nodes need %s and the files of messages", c.dir().Database(), c.dir().Key())
	}
	if c.json {
		return c.printJSON(struct {
			Rows int64 `json:"rows"`
		}{rows})
	}
	fmt.Fprintf(c.out, "Copied %d rows, and compared the counts of all tables\n", rows)
	return nil
}
