import { isJsonObject } from '@keelson/core/internal';
import type { Pod } from '@keelson/kinds';
import type { PodSource } from '../base/contracts/pod-source.ts';
import { ManifestError, parseManifests } from './parse-manifest.ts';
import { podsOfManifests, withoutDuplicates } from './pod-set.ts';
import { reportDuplicate, type SourceOptions } from './source-options.ts';
import { staticPod } from './static-pod.ts';
import type { SubmittedManifests } from './submitted-manifests.ts';

export interface SubmitSourceOptions extends SourceOptions {
  /** Persistent storage of manifests. */
  readonly store: SubmittedManifests;
}

/** More than any node runs; prevents a client that submits in a loop from filling the disk. */
const maxManifests = 1000;

/** Name and namespace of a manifest as submitted. */
function keyOf(manifest: unknown): string {
  const meta = isJsonObject(manifest) && isJsonObject(manifest['metadata']) ? manifest['metadata'] : {};
  const { namespace, name } = meta;
  return `${typeof namespace === 'string' && namespace !== '' ? namespace : 'default'}/${String(name)}`;
}

/**
 * Pods that were submitted to the agent's server. They are stored on disk and continue after a restart of the agent,
 * until they are removed. Changes are atomic and run one at a time.
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

  /** The pods of the submitted manifests. */
  pods(): readonly Pod[] {
    return this.#readable();
  }

  /**
   * Adds pods, or replaces those of the same names.
   *
   * @throws ManifestError when one of them is invalid; nothing is changed then
   */
  put(document: Buffer): Promise<readonly Pod[]> {
    return this.#change(document, (added) => new Map([...this.#manifests, ...added]));
  }

  /** Replaces the whole set by these pods. Throws like {@link put}. */
  replace(document: Buffer): Promise<readonly Pod[]> {
    return this.#change(document, (added) => added);
  }

  /** Removes a pod, by its submitted name or its full name; undefined when there is none. */
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

  /** The stored manifests that this version accepts; an older version may have accepted others. */
  #readable(): Pod[] {
    const { pods } = podsOfManifests([...this.#manifests.values()], this.#origin(), this.#options.logger);
    return withoutDuplicates(pods, reportDuplicate(this.#options, this.name));
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
        throw new ManifestError(`would result in ${next.size} manifests; at most ${maxManifests} are stored`);
      await this.#keep(next);
      return pods;
    });
  }

  /** Saves before the change takes effect, so that an acknowledged change survives the agent. */
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
