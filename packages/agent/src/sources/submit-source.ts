import type { Pod } from '@keelson/kinds';
import type { PodSource } from '../base/contracts/pod-source.ts';
import { isRecord } from '../base/is-record.ts';
import { ManifestError } from './manifest-error.ts';
import { parseManifests } from './parse-manifest.ts';
import { podsOfManifests, withoutDuplicates } from './pod-set.ts';
import { refuseDuplicate, type SourceOptions } from './source-options.ts';
import { staticPod } from './static-pod.ts';
import type { SubmittedManifests } from './submitted-manifests.ts';

export interface SubmitSourceOptions extends SourceOptions {
  /** Where manifests outlive the agent. */
  readonly store: SubmittedManifests;
}

/** More pods than a node runs; keeps somebody who submits in a loop from filling the disk. */
const maxManifests = 1000;

/** Name and namespace of a manifest, as its submitter knows it. */
function keyOf(manifest: unknown): string {
  const meta = isRecord(manifest) && isRecord(manifest['metadata']) ? manifest['metadata'] : {};
  const { namespace, name } = meta;
  return `${typeof namespace === 'string' && namespace !== '' ? namespace : 'default'}/${String(name)}`;
}

/**
 * Pods that were submitted to the agent's server. They are kept on disk, so that they go on running when the agent is
 * restarted, until they are taken back. Changes are all or nothing, and one at a time.
 */
export class SubmitSource implements PodSource {
  readonly name = 'submit';
  readonly #options: SubmitSourceOptions;
  #manifests: ReadonlyMap<string, unknown> = new Map();
  #turn: Promise<unknown> = Promise.resolve();
  #stopped = false;

  constructor(options: SubmitSourceOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const stored = await this.#options.store.load();
    this.#manifests = new Map(stored.map((manifest) => [keyOf(manifest), manifest]));
    this.#deliver(this.#readable());
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#turn;
  }

  /** The pods that came of what was submitted. */
  pods(): readonly Pod[] {
    return this.#readable();
  }

  /**
   * Adds pods, or replaces those of the same names.
   *
   * @throws ManifestError when one of them is none; nothing has changed then
   */
  put(document: Buffer): Promise<readonly Pod[]> {
    return this.#change(document, (added) => new Map([...this.#manifests, ...added]));
  }

  /** Makes these pods the whole set. Throws as {@link put} does. */
  replace(document: Buffer): Promise<readonly Pod[]> {
    return this.#change(document, (added) => added);
  }

  /** Takes a pod back, by the name it was submitted with or the one it runs under; undefined when there is none. */
  remove(namespace: string, name: string): Promise<Pod | undefined> {
    return this.#inTurn(async () => {
      const suffix = `-${this.#options.nodeName}`;
      const names = name.endsWith(suffix) ? [name, name.slice(0, -suffix.length)] : [name];
      const key = names
        .map((candidate) => `${namespace}/${candidate}`)
        .find((candidate) => this.#manifests.has(candidate));
      if (key === undefined) return undefined;
      const [pod] = podsOfManifests([this.#manifests.get(key)], this.#origin(), this.#options.logger).pods;
      await this.#keep(new Map([...this.#manifests].filter(([other]) => other !== key)));
      return pod;
    });
  }

  #origin() {
    return { nodeName: this.#options.nodeName, source: 'http', place: 'submit:' } as const;
  }

  /** What an older version took may be refused by this one; the rest counts. */
  #readable(): Pod[] {
    const { pods } = podsOfManifests([...this.#manifests.values()], this.#origin(), this.#options.logger);
    return withoutDuplicates(pods, refuseDuplicate(this.#options, this.name));
  }

  #change(
    document: Buffer,
    combine: (added: ReadonlyMap<string, unknown>) => ReadonlyMap<string, unknown>,
  ): Promise<readonly Pod[]> {
    return this.#inTurn(async () => {
      const { items, problems } = parseManifests(document);
      const [refused] = problems;
      if (refused !== undefined) throw new ManifestError(`has document ${refused.document}, which ${refused.problem}`);
      const pods = items.map((item) => staticPod(item, this.#origin()).pod);
      const added = new Map(items.map((item) => [keyOf(item), item]));
      if (added.size < items.length) throw new ManifestError('names a pod twice');
      const next = combine(added);
      if (next.size > maxManifests)
        throw new ManifestError(`would make ${next.size} manifests; at most ${maxManifests} are kept`);
      await this.#keep(next);
      return pods;
    });
  }

  /** Durable first: what the caller hears of outlives the agent. */
  async #keep(manifests: ReadonlyMap<string, unknown>): Promise<void> {
    await this.#options.store.save([...manifests.values()]);
    this.#manifests = manifests;
    this.#deliver(this.#readable());
  }

  #deliver(pods: Pod[]): void {
    if (!this.#stopped) this.#options.sink(pods);
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(work);
    this.#turn = result.catch(() => {});
    return result;
  }
}
