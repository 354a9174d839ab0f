/** A statement with parameters `$1…`; the name is that of the prepared statement where those are allowed. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

export type Statements = ReturnType<typeof statementsOf>;

/** Returns all SQL statements of a store. @param schema a name that needs no escaping within quotes */
export function statementsOf(schema: string) {
  const own = (name: string) => `"${schema}".${name}`;
  const statement = (name: string, text: string): Statement => ({
    name: `keelson_${schema.slice(0, 40)}_${name}`,
    text,
  });
  return {
    apply: statement(
      'apply',
      `select base, created, ord, create_rev, mod_rev, expires_at, text_value, bytes_value
       from ${own('apply')}($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    ),
    resolve: statement('resolve', `select key, rev, create_rev from ${own('resolve')}($1, $2, $3)`),
    head: statement('head', `select stamp, head, compacted from ${own('head')}()`),
    listNow: statement(
      'list_now',
      `select key, create_rev, mod_rev, expires_at, text_value, bytes_value from ${own('list_now')}($1, $2, $3, $4, $5)`,
    ),
    listThen: statement(
      'list_then',
      `select key, create_rev, mod_rev, expires_at, text_value, bytes_value from ${own('list_then')}($1, $2, $3, $4, $5, $6)`,
    ),
    countNow: statement('count_now', `select stamp, head, compacted, count from ${own('count_now')}($1, $2)`),
    countThen: statement('count_then', `select stamp, head, compacted, count from ${own('count_then')}($1, $2, $3)`),
    changes: statement(
      'changes',
      `select rev, create_rev, prev_rev, key, op, expires_at, text_value, bytes_value, prev_expires, prev_text, prev_bytes
       from ${own('changes')}($1, $2, $3, $4, $5, $6, $7)`,
    ),
    compact: statement('compact', `select head, compacted from ${own('compact')}($1)`),
    trim: statement('trim', `select compacted from ${own('trim_history')}($1, $2, $3)`),
    extend: statement('extend', `select upto from ${own('extend_log')}()`),
    enter: statement('enter', `select ${own('enter')}($1)`),
    state: statement(
      'state',
      `select m.store_id, m.epoch, h.stamp, h.head, h.compacted, m.partition_revs,
         (select string_agg(l.low || ' ' || l.high, ',') from ${own('lost')} l)
       from ${own('meta')} m, ${own('head')}() h`,
    ),
    /** The keys that expire next, in the order of their expiry, with the milliseconds until they expire. */
    expiring: statement(
      'expiring',
      `select key, mod_rev, expires_at - ${own('now_ms')}() from ${own('objects')}
       where expires_at is not null order by expires_at limit $1`,
    ),
    notify: statement('notify', 'select pg_notify($1, $2)'),
    leadExpiry: statement(
      'lead_expiry',
      `select pg_try_advisory_xact_lock(hashtextextended('keelson expire ' || '${schema}', 0))`,
    ),
    partitions: statement(
      'partitions',
      `select c.relname, i.inhrelid is not null, coalesce(i.inhdetachpending, false)
       from pg_class c left join pg_inherits i on i.inhrelid = c.oid
       where c.relnamespace = '"${schema}"'::regnamespace and c.relkind = 'r' and c.relname ~ '^log_[0-9]+$'`,
    ),
  };
}
