import { tokenOf } from './expected-state.ts';
import type { CallOf, IndexedHistory } from './indexed-history.ts';
import type { WriteOperation } from './records.ts';
import type { Version, Versions } from './versions.ts';
import type { Findings } from './violation.ts';

type Write = CallOf<WriteOperation>;

/** The assignment of writes to versions, and the writes without a version. */
export interface MatchedWrites {
  /** Successful deletes that no client has observed. */
  readonly unseenDeletes: readonly Write[];
  readonly settledUnknown: number;
}

/**
 * Assigns to every version the write that caused it: an acknowledged one by its revision, one whose outcome is unknown
 * by its token. A deletion carries no token; it belongs to the acknowledged delete of its uid, otherwise to a delete of
 * unknown outcome that may have caused it.
 */
export function matchWrites(history: IndexedHistory, versions: Versions, findings: Findings): MatchedWrites {
  const byRevision = new Map<number, Write>();
  const byToken = new Map<string, Write>();
  const deletesByUid = new Map<string, Write>();
  const openDeletes = new Map<string, Write[]>();
  for (const write of history.writes) {
    const { op, reply } = write;
    if (op.do !== 'delete') {
      byToken.set(op.token, write);
      const object = reply.is === 'ok' ? history.objects.get(reply.object ?? -1) : undefined;
      if (object === undefined) continue;
      const other = byRevision.get(object.revision);
      if (other !== undefined) findings.add('I3', `revision ${object.revision} was given to two writes`, other, write);
      byRevision.set(object.revision, write);
    } else if (reply.is === 'ok' && reply.uid !== undefined) {
      const other = deletesByUid.get(reply.uid);
      if (other !== undefined)
        findings.add('I4', `two deletes of ${op.key} (uid ${reply.uid}) succeeded`, other, write);
      deletesByUid.set(reply.uid, write);
    } else if (reply.is === 'unknown') {
      openDeletes.set(op.key, [...(openDeletes.get(op.key) ?? []), write]);
    }
  }
  const used = new Map<Write, Version>();
  let settledUnknown = 0;
  for (const kind of versions.kinds) {
    for (const key of versions.keys(kind)) {
      let before: Version | undefined;
      for (const version of versions.chain(key)) {
        const write = version.deleted
          ? (deletesByUid.get(version.object.uid) ?? likelyDelete(openDeletes.get(key) ?? [], version, before, used))
          : (byRevision.get(version.revision) ?? byToken.get(tokenOf(version.object, present(before)) ?? ''));
        judge(version, before, write, used, findings);
        if (write !== undefined) {
          version.write = write;
          if (write.reply.is === 'unknown') settledUnknown += 1;
        }
        before = version;
      }
    }
  }
  const unseenDeletes = [...deletesByUid.values()].filter((write) => !used.has(write));
  return { unseenDeletes, settledUnknown };
}

const present = (version: Version | undefined) =>
  version === undefined || version.deleted ? undefined : version.object;

function likelyDelete(
  candidates: readonly Write[],
  version: Version,
  before: Version | undefined,
  used: ReadonlyMap<Write, Version>,
): Write | undefined {
  return candidates.find(
    (write) =>
      !used.has(write) &&
      write.start <= version.seenAt &&
      (write.op.do !== 'delete' || write.op.expect === undefined || write.op.expect === before?.revision),
  );
}

function judge(
  version: Version,
  before: Version | undefined,
  write: Write | undefined,
  used: Map<Write, Version>,
  findings: Findings,
): void {
  const { key, revision, deleted, source, object } = version;
  if (write === undefined) {
    const what = deleted ? `${key} was deleted at ${revision}` : `${key} changed at ${revision}`;
    findings.add('I2', `${what}, and no client asked for it`, source, object, before?.object);
    return;
  }
  const other = used.get(write);
  if (other !== undefined) {
    findings.add(
      'I2',
      `one write took effect twice, at ${other.revision} and at ${revision}`,
      write,
      other.source,
      source,
    );
  }
  used.set(write, version);
  if (write.reply.is === 'refused') {
    findings.add('I2', `a write that was refused took effect at ${revision}`, write, source, object);
  }
  if (write.op.key !== key)
    findings.add('I2', `a write of ${write.op.key} changed ${key} at ${revision}`, write, source);
}
