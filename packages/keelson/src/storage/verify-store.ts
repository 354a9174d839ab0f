import { isStorageError, type KindDefinition } from '@keelson/core';
import { encryptionKeyOf, kindPrefix } from '@keelson/core/internal';
import { type Entry, prefixRange, type Revision, type Store } from '@keelson/core/storage-adapter';

/** Results of verifying a store. */
export interface StoreFindings {
  readonly head: Revision;
  readonly compacted: Revision;
  /** Number of objects by plural and group; objects of kinds that are not served are counted under `other`. */
  readonly objects: ReadonlyMap<string, number>;
  /** Changes between the compacted revision and the head. */
  readonly changes: number;
  /** Objects that are encrypted with a key that is not configured, so that their content was not checked. */
  readonly encrypted: number;
  /** One sentence each, at most {@link maxDamages}. */
  readonly damages: readonly string[];
}

const maxDamages = 100;
/** Records of the server itself, and objects. */
const ranges = [prefixRange('!keelson/'), prefixRange('/')];

/**
 * Reads all records and checks their consistency: every record can be decoded, is an object with the name of its key,
 * and has a revision that the store has reached; the history has no gap between the compacted revision and the head.
 *
 * @throws StorageError when the store as a whole cannot be read
 */
export async function verifyStore(store: Store, kinds: readonly KindDefinition[]): Promise<StoreFindings> {
  const names = new Map(kinds.filter((kind) => !kind.virtual).map((kind) => [kindPrefix(kind), nameOf(kind)]));
  const head = await store.currentRevision();
  const compacted = await store.compactedRevision();
  const objects = new Map<string, number>();
  const damages: string[] = [];
  let encrypted = 0;
  const damagedKeys = new Set<string>();
  const report = (damage: string, key?: string) => {
    // The current state of a key is also the last state in its history.
    if (key !== undefined && damagedKeys.has(key)) return;
    if (key !== undefined) damagedKeys.add(key);
    if (damages.length < maxDamages) damages.push(damage);
  };
  for (const range of ranges) {
    let previous = '';
    for await (const chunk of store.list(range)) {
      for (const entry of chunk.entries) {
        const sealed = encryptionKeyOf(entry.value) !== undefined;
        if (sealed && entry.key.startsWith('/')) encrypted += 1;
        const damage =
          damageOf(entry, chunk.revision, sealed) ?? (entry.key === previous ? 'is listed twice' : undefined);
        if (damage !== undefined) report(`${entry.key}: ${damage}`, entry.key);
        previous = entry.key;
        if (!entry.key.startsWith('/')) continue;
        const name = names.get(prefixOf(entry.key)) ?? 'other';
        objects.set(name, (objects.get(name) ?? 0) + 1);
      }
    }
  }
  const changes = await verifyHistory(store, compacted, head, report);
  return { head, compacted, objects, changes, encrypted, damages };
}

/** Returns the number of changes. */
async function verifyHistory(
  store: Store,
  compacted: Revision,
  head: Revision,
  report: (damage: string, key?: string) => void,
) {
  const after = Math.max(compacted, 1);
  if (after >= head) return 0;
  const dense = store.capabilities.denseRevisions && store.capabilities.oneChangePerRevision;
  let last = after;
  let changes = 0;
  try {
    const stream = await store.watch({ start: '!', end: '0' }, { after, prevValue: true });
    for await (const { changes: batch, frontier } of stream) {
      for (const { revision, key, entry, prev } of batch) {
        if (dense && revision !== last + 1) report(`history: revision ${last + 1} is missing`);
        if (entry?.damaged || prev?.damaged)
          report(`history: a state of ${key} at revision ${revision} is damaged`, key);
        last = revision;
        changes++;
      }
      if (frontier >= head) break;
    }
    await stream.close();
  } catch (error) {
    if (!isStorageError(error, 'Corrupt')) throw error;
    report(`history after revision ${last}: ${error.message}`);
  }
  return changes;
}

function damageOf(
  { key, value, createRevision, modRevision, damaged, damage = 'fails its checksum' }: Entry,
  head: Revision,
  sealed: boolean,
): string | undefined {
  if (damaged) return `the record ${damage}`;
  if (createRevision < 1 || createRevision > modRevision || modRevision > head) {
    return `its revisions ${createRevision} and ${modRevision} are impossible in a store at ${head}`;
  }
  if (!key.startsWith('/') || sealed) return undefined;
  let object: { readonly metadata?: { readonly name?: unknown } } | null;
  try {
    object = JSON.parse(
      Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('utf8'),
    ) as typeof object;
  } catch {
    return 'the record is not JSON';
  }
  const name = object?.metadata?.name;
  if (typeof name !== 'string') return 'the object has no metadata with a name';
  return key.endsWith(`/${name}`) ? undefined : `the object in this place has the name ${JSON.stringify(name)}`;
}

/** The prefix `/group/plural/` of a key. */
function prefixOf(key: string): string {
  return key.slice(0, key.indexOf('/', key.indexOf('/', 1) + 1) + 1);
}

function nameOf({ names, group }: KindDefinition): string {
  return group === '' ? names.plural : `${names.plural}.${group}`;
}
