-- A store: its current state, and the undo log with the values that changes have replaced. One schema is one store.

create table :"schema".meta (
  one boolean primary key default true check (one),
  store_id uuid not null default gen_random_uuid(),
  epoch integer not null default 1,
  -- Timeline on which the revisions of this epoch are written: another value means a failover, a restore or a copy.
  timeline text not null,
  system_id text not null,
  -- Lower bound of the current revision, also while the log has no row.
  floor_rev bigint not null default 1,
  compact_rev bigint not null default 0,
  partition_revs bigint not null check (partition_revs > 0)
);

-- Revisions strictly between the two bounds were, or may have been, assigned and then lost.
create table :"schema".lost (
  epoch integer primary key,
  low bigint not null,
  high bigint not null
);

-- Revision that was current at a point in time; converts the age of history to a revision.
create table :"schema".marks (
  rev bigint primary key,
  at bigint not null
);

-- Batches of a writer up to this number that are not in the log are refused.
create table :"schema".fences (
  writer bigint primary key,
  batch bigint not null,
  at timestamptz not null default now()
);

-- mod_rev is in no index, so that updates stay within their page.
create table :"schema".objects (
  key text collate "C" primary key,
  create_rev bigint not null,
  mod_rev bigint not null,
  expires_at bigint,
  -- One of the two is set: text when the value is UTF-8 without U+0000, which needs no hexadecimal encoding.
  text_value text,
  bytes_value bytea
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);

create index objects_expiry on :"schema".objects (expires_at) where expires_at is not null;

-- One row per revision: the change, and the replaced value. op: 0 create, 1 update, 2 delete.
create table :"schema".log (
  rev bigint not null,
  key text collate "C" not null,
  op smallint not null,
  create_rev bigint not null,
  prev_rev bigint not null,
  prev_expires bigint,
  writer bigint not null,
  batch bigint not null,
  prev_text text,
  prev_bytes bytea,
  primary key (rev)
) partition by range (rev);

create index log_history on :"schema".log (key, rev);
create index log_deletes on :"schema".log (key, rev) where op = 2;

do $body$
begin
  alter table :"schema".objects alter column text_value set compression lz4, alter column bytes_value set compression lz4;
  alter table :"schema".log alter column prev_text set compression lz4, alter column prev_bytes set compression lz4;
exception when feature_not_supported then
  null;
end
$body$;

-- Epoch milliseconds. The only clock of the store, so that the clocks of its servers do not matter.
create function :"schema".now_ms() returns bigint language sql volatile
as $body$ select (extract(epoch from clock_timestamp()) * 1000)::bigint $body$;

create function :"schema".timeline() returns text language sql volatile
as $body$ select substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) $body$;

-- Empty when the role lacks the privilege.
create function :"schema".system_id() returns text language plpgsql volatile
as $body$
begin
  return (select c.system_identifier::text from pg_control_system() c);
exception when insufficient_privilege then
  return '';
end
$body$;

create function :"schema".lock_writes() returns void language sql volatile
as $body$ select pg_advisory_xact_lock(hashtextextended('keelson write ' || :'schema', 0)) $body$;

-- Identity, epoch and current revision of the store.
create function :"schema".head(out stamp text, out head bigint, out compacted bigint) returns record language plpgsql volatile
as $body$
begin
  select m.store_id || '/' || m.epoch || '/' || :"schema".timeline(),
         greatest(m.floor_rev, coalesce((select l.rev from :"schema".log l order by l.rev desc limit 1), 0)), m.compact_rev
    into stamp, head, compacted from :"schema".meta m;
end
$body$;

-- Decides a batch of writes, at most one per key. The first row contains the revision before the batch and, per write, the
-- createRevision (0: created by this write, empty: refused); successful writes get dense revisions in order. Every other
-- row is the present entry of a refused write.
create function :"schema".apply(
  p_stamp text, p_writer bigint, p_batch bigint, p_channel text,
  p_keys text[], p_expect bigint[], p_texts text[], p_bytes bytea[], p_ttls bigint[])
returns table (base bigint, created text, ord integer, create_rev bigint, mod_rev bigint, expires_at bigint, text_value text, bytes_value bytea)
language plpgsql volatile
set jit to off set enable_seqscan to off set enable_hashjoin to off set enable_mergejoin to off set plan_cache_mode to force_generic_plan
as $body$
#variable_conflict use_column
declare
  v_base bigint;
  v_stamp text;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'writes need the isolation level read committed' using errcode = 'KS002';
  end if;
  -- A statement of its own, so that the next one sees everything that was written under the lock. Held until after the commit
  -- is visible: revisions become visible in their order.
  perform :"schema".lock_writes();
  select h.stamp, h.head into v_stamp, v_base from :"schema".head() h;
  if v_stamp is distinct from p_stamp then
    raise exception 'the store is %, the writer expects %', v_stamp, p_stamp using errcode = 'KS001';
  end if;
  if exists (select 1 from :"schema".fences f where f.writer = p_writer and f.batch >= p_batch) then
    raise exception 'batch % was given up', p_batch using errcode = 'KS003';
  end if;
  return query
  with input as (
    select u.k, u.x, u.t, u.b, u.l, u.o::integer as o, u.t is null and u.b is null as removes
      from unnest(p_keys, p_expect, p_texts, p_bytes, p_ttls) with ordinality as u(k, x, t, b, l, o)
  ), judged as (
    select i.*, c.create_rev as cr, c.mod_rev as mr, c.expires_at as ce, c.text_value as ct, c.bytes_value as cb,
           coalesce(c.mod_rev, 0) = i.x and not (i.removes and c.mod_rev is null) as good
      from input i left join :"schema".objects c on c.key = i.k
  ), granted as (
    select j.*, v_base + row_number() over (order by j.o) as nr from judged j where j.good
  ), logged as (
    insert into :"schema".log (rev, key, op, create_rev, prev_rev, prev_expires, writer, batch, prev_text, prev_bytes)
    select g.nr, g.k, case when g.removes then 2 when g.mr is null then 0 else 1 end, coalesce(g.cr, g.nr), g.x, g.ce,
           p_writer, p_batch, g.ct, g.cb
      from granted g
  ), stored as (
    insert into :"schema".objects as t (key, create_rev, mod_rev, expires_at, text_value, bytes_value)
    select g.k, coalesce(g.cr, g.nr), g.nr, :"schema".now_ms() + g.l, g.t, g.b from granted g where not g.removes
    on conflict (key) do update set mod_rev = excluded.mod_rev, expires_at = excluded.expires_at,
      text_value = excluded.text_value, bytes_value = excluded.bytes_value
  ), removed as (
    delete from :"schema".objects t using granted g where g.removes and t.key = g.k
  ), told as (
    select pg_notify(p_channel, max(g.nr)::text) from granted g where p_channel is not null having count(*) > 0
  )
  select v_base, string_agg(case when j.good then coalesce(j.cr, 0)::text else '' end, ',' order by j.o),
         (select count(*)::integer from told), null::bigint, null::bigint, null::bigint, null::text, null::bytea
    from judged j
  union all
  select null, null, j.o, j.cr, j.mr, j.ce, j.ct, j.cb from judged j where not j.good;
end
$body$;

-- The outcome of a batch whose answer was lost: its log rows. Without any, the batch is recorded as refused. Takes the
-- write lock, so that the batch is either decided already or refused when it arrives.
create function :"schema".resolve(p_writer bigint, p_batch bigint, p_since bigint)
returns table (key text, rev bigint, create_rev bigint)
language plpgsql volatile
as $body$
#variable_conflict use_column
begin
  perform :"schema".lock_writes();
  return query
    select l.key, l.rev, l.create_rev from :"schema".log l where l.rev > p_since and l.writer = p_writer and l.batch = p_batch;
  if not found then
    insert into :"schema".fences as f (writer, batch) values (p_writer, p_batch)
      on conflict (writer) do update set batch = greatest(f.batch, excluded.batch), at = now();
  end if;
end
$body$;

-- The reads below return one row about the store (no key; create_rev: its revision, mod_rev: the compacted revision,
-- expires_at: examined rows, text_value: the stamp) and, in key order, rows about keys. They are volatile with one query each:
-- its snapshot is then taken after its tables are locked, so that a partition cannot be dropped between the two.

-- The current state of [p_start, p_end), until p_limit rows or p_budget bytes.
create function :"schema".list_now(p_start text, p_end text, p_limit integer, p_budget bigint, p_values boolean)
returns table (key text, create_rev bigint, mod_rev bigint, expires_at bigint, text_value text, bytes_value bytea)
language plpgsql volatile
set jit to off set enable_seqscan to off set max_parallel_workers_per_gather to 0 set plan_cache_mode to force_generic_plan
as $body$
#variable_conflict use_column
begin
  return query
  with page as (
    select o.*, sum(o.size) over (order by o.key rows unbounded preceding) - o.size as before
      from (select c.*, coalesce(octet_length(c.text_value), octet_length(c.bytes_value)) as size from :"schema".objects c
             where c.key >= p_start and c.key < p_end order by c.key limit p_limit) o
  )
  select null::text, greatest(m.floor_rev, coalesce((select l.rev from :"schema".log l order by l.rev desc limit 1), 0)),
         m.compact_rev, (select count(*) from page), m.store_id || '/' || m.epoch || '/' || :"schema".timeline(), null::bytea
    from :"schema".meta m
  union all
  select p.key, p.create_rev, p.mod_rev, p.expires_at, case when p_values then p.text_value end,
         case when p_values then p.bytes_value end
    from page p where p.before < p_budget;
end
$body$;

-- The state of [p_start, p_end) at p_rev. The state of a key is the value in its first log row after p_rev, or the current
-- value of a key that has not changed since. A row with mod_rev 0 is a key that did not exist at p_rev.
create function :"schema".list_then(p_start text, p_end text, p_rev bigint, p_limit integer, p_budget bigint, p_values boolean)
returns table (key text, create_rev bigint, mod_rev bigint, expires_at bigint, text_value text, bytes_value bytea)
language plpgsql volatile
set jit to off set enable_seqscan to off set enable_hashjoin to off set enable_mergejoin to off
set max_parallel_workers_per_gather to 0 set plan_cache_mode to force_generic_plan
as $body$
#variable_conflict use_column
begin
  return query
  with clock as materialized (
    select greatest(m.floor_rev, coalesce((select l.rev from :"schema".log l order by l.rev desc limit 1), 0)) as head
      from :"schema".meta m
  ), live as (
    select c.*, c.mod_rev > p_rev as changed from :"schema".objects c
     where c.key >= p_start and c.key < p_end order by c.key limit p_limit
  ), gone as (
    select distinct d.key from :"schema".log d
     where (select head from clock) > p_rev and d.op = 2 and d.rev > p_rev and d.key >= p_start and d.key < p_end
       and not exists (select 1 from :"schema".objects o where o.key = d.key)
     order by d.key limit p_limit
  ), candidates as (
    select * from live
    union all
    select g.key, null, null, null, null, null, true from gone g
    order by key limit p_limit
  ), images as (
    select c.key,
           case when c.changed then u.create_rev else c.create_rev end as create_rev,
           case when c.changed then u.prev_rev else c.mod_rev end as mod_rev,
           case when c.changed then u.prev_expires else c.expires_at end as expires_at,
           case when c.changed then u.prev_text else c.text_value end as text_value,
           case when c.changed then u.prev_bytes else c.bytes_value end as bytes_value
      from candidates c
      left join lateral (
        select l.create_rev, l.prev_rev, l.prev_expires, l.prev_text, l.prev_bytes from :"schema".log l
         where c.changed and l.key = c.key and l.rev > p_rev order by l.rev limit 1
      ) u on true
  ), page as (
    select i.*, sum(coalesce(octet_length(i.text_value), octet_length(i.bytes_value), 0))
                over (order by i.key rows between unbounded preceding and 1 preceding) as before
      from images i
  )
  select null::text, c.head, m.compact_rev, (select count(*) from page),
         m.store_id || '/' || m.epoch || '/' || :"schema".timeline(), null::bytea
    from :"schema".meta m, clock c
  union all
  select p.key, p.create_rev, p.mod_rev, p.expires_at, case when p_values then p.text_value end,
         case when p_values then p.bytes_value end
    from page p where coalesce(p.before, 0) < p_budget;
end
$body$;

create function :"schema".count_now(p_start text, p_end text, out stamp text, out head bigint, out compacted bigint, out count bigint)
returns record language plpgsql volatile
as $body$
begin
  select m.store_id || '/' || m.epoch || '/' || :"schema".timeline(),
         greatest(m.floor_rev, coalesce((select l.rev from :"schema".log l order by l.rev desc limit 1), 0)), m.compact_rev,
         (select count(*) from :"schema".objects o where o.key >= p_start and o.key < p_end)
    into stamp, head, compacted, count from :"schema".meta m;
end
$body$;

create function :"schema".count_then(
  p_start text, p_end text, p_rev bigint, out stamp text, out head bigint, out compacted bigint, out count bigint)
returns record language plpgsql volatile
as $body$
begin
  select m.store_id || '/' || m.epoch || '/' || :"schema".timeline(),
         greatest(m.floor_rev, coalesce((select l.rev from :"schema".log l order by l.rev desc limit 1), 0)), m.compact_rev,
         (select count(*) from :"schema".objects o where o.key >= p_start and o.key < p_end and o.mod_rev <= p_rev)
         + (select count(*) from (
              select distinct on (l.key) l.prev_rev from :"schema".log l
               where l.rev > p_rev and l.key >= p_start and l.key < p_end order by l.key, l.rev) f
             where f.prev_rev <> 0)
    into stamp, head, compacted, count from :"schema".meta m;
end
$body$;

-- Changes in (p_after, p_upto] of [p_start, p_end), or without end, oldest first, until p_limit rows or p_budget bytes. The row without a key
-- contains, in this order: revision of the store, compacted revision, examined rows, stamp.
create function :"schema".changes(
  p_after bigint, p_upto bigint, p_start text, p_end text, p_limit integer, p_budget bigint, p_prev boolean)
returns table (rev bigint, create_rev bigint, prev_rev bigint, key text, op smallint, expires_at bigint, text_value text,
  bytes_value bytea, prev_expires bigint, prev_text text, prev_bytes bytea)
language plpgsql volatile
set jit to off set enable_seqscan to off set enable_hashjoin to off set enable_mergejoin to off
set max_parallel_workers_per_gather to 0 set plan_cache_mode to force_generic_plan
as $body$
#variable_conflict use_column
begin
  return query
  with found as (
    select l.* from :"schema".log l
     where l.rev > p_after and l.rev <= p_upto and l.key >= p_start and (p_end is null or l.key < p_end) order by l.rev limit p_limit
  ), valued as (
    select f.*,
           case when o.key is null then n.prev_expires else o.expires_at end as expires_at,
           case when o.key is null then n.prev_text else o.text_value end as text_value,
           case when o.key is null then n.prev_bytes else o.bytes_value end as bytes_value
      from found f
      left join :"schema".objects o on f.op <> 2 and o.key = f.key and o.mod_rev = f.rev
      left join lateral (
        select l.prev_expires, l.prev_text, l.prev_bytes from :"schema".log l
         where o.key is null and f.op <> 2 and l.key = f.key and l.rev > f.rev order by l.rev limit 1
      ) n on true
  ), page as (
    select v.*, sum(coalesce(octet_length(v.text_value), octet_length(v.bytes_value), 0)
                  + case when p_prev then coalesce(octet_length(v.prev_text), octet_length(v.prev_bytes), 0) else 0 end)
                over (order by v.rev rows between unbounded preceding and 1 preceding) as before
      from valued v
  )
  select greatest(m.floor_rev, coalesce((select l.rev from :"schema".log l order by l.rev desc limit 1), 0)), m.compact_rev,
         (select count(*) from page), null::text, null::smallint, null::bigint,
         m.store_id || '/' || m.epoch || '/' || :"schema".timeline(), null::bytea, null::bigint, null::text, null::bytea
    from :"schema".meta m
  union all
  select p.rev, p.create_rev, p.prev_rev, p.key, p.op, p.expires_at, p.text_value, p.bytes_value,
         case when p_prev then p.prev_expires end, case when p_prev then p.prev_text end, case when p_prev then p.prev_bytes end
    from page p where coalesce(p.before, 0) < p_budget;
end
$body$;

-- Raises the compacted revision; returns it, and the revision of the store, which it cannot exceed.
create function :"schema".compact(p_rev bigint, out head bigint, out compacted bigint) returns record language plpgsql volatile
as $body$
begin
  select h.head, h.compacted into head, compacted from :"schema".head() h;
  if p_rev <= head and p_rev > compacted then
    update :"schema".meta m set compact_rev = greatest(m.compact_rev, p_rev), floor_rev = greatest(m.floor_rev, p_rev)
      returning m.compact_rev into compacted;
  end if;
end
$body$;

-- Compacts history that is outside the window both by count and by age. Has no effect while another server does so.
create function :"schema".trim_history(p_min_changes bigint, p_min_age_ms bigint, p_spacing_ms bigint, out compacted bigint)
returns bigint language plpgsql volatile
as $body$
declare
  v_head bigint;
  v_bound bigint;
  v_now bigint;
begin
  if not pg_try_advisory_xact_lock(hashtextextended('keelson trim ' || :'schema', 0)) then
    return;
  end if;
  v_head := (select h.head from :"schema".head() h);
  -- After the head was read: whatever is at or below it was written before this time.
  v_now := :"schema".now_ms();
  if not exists (select 1 from :"schema".marks k where k.rev = v_head or k.at > v_now - p_spacing_ms) then
    insert into :"schema".marks values (v_head, v_now);
  end if;
  v_bound := least(coalesce((select max(k.rev) from :"schema".marks k where k.at <= v_now - p_min_age_ms), 0), v_head - p_min_changes);
  compacted := (select c.compacted from :"schema".compact(greatest(v_bound, 0)) c);
  delete from :"schema".marks k
   where k.rev < (select max(m.rev) from :"schema".marks m where m.at <= v_now - p_min_age_ms);
  delete from :"schema".fences f where f.at < now() - interval '1 day';
end
$body$;

-- Creates the partitions for the current and future revisions: the current one and two more. They are created beside the log
-- and then attached, which blocks neither readers nor writers. Returns the first revision without a partition.
create function :"schema".extend_log(out upto bigint) returns bigint language plpgsql volatile
set lock_timeout to '5s'
as $body$
declare
  v_size bigint;
  v_low bigint;
  v_name text;
begin
  perform pg_advisory_xact_lock(hashtextextended('keelson extend ' || :'schema', 0));
  v_size := (select m.partition_revs from :"schema".meta m);
  v_low := ((select h.head from :"schema".head() h) + 1) / v_size * v_size;
  for i in 0..2 loop
    v_name := 'log_' || v_low;
    if to_regclass(format('%I.%I', :'schema', v_name)) is null then
      execute format('create table %I.%I (like %I.log including defaults including storage including compression)',
        :'schema', v_name, :'schema');
      execute format('alter table %I.log attach partition %I.%I for values from (%s) to (%s)',
        :'schema', :'schema', v_name, v_low, v_low + v_size);
    end if;
    v_low := v_low + v_size;
  end loop;
  upto := v_low;
end
$body$;

-- Enters the timeline of the server. When it differs from the timeline on which the store was written, or when revisions up to
-- p_seen are missing, history was rewound: revisions continue far above, and none is assigned twice.
create function :"schema".enter(p_seen bigint) returns void language plpgsql volatile
as $body$
declare
  v_head bigint;
  v_high bigint;
  v_epoch integer;
  v_system text := :"schema".system_id();
begin
  perform :"schema".lock_writes();
  v_head := (select h.head from :"schema".head() h);
  if v_head >= p_seen and exists (
    select 1 from :"schema".meta m
     where m.timeline = :"schema".timeline() and (m.system_id = v_system or m.system_id = '' or v_system = '')) then
    return;
  end if;
  v_high := greatest(v_head, p_seen) + 1000000;
  update :"schema".meta set epoch = epoch + 1, timeline = :"schema".timeline(), system_id = v_system, floor_rev = v_high
    returning epoch into v_epoch;
  insert into :"schema".lost (epoch, low, high) values (v_epoch, v_head, v_high);
end
$body$;
