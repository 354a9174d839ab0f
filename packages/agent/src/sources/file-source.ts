import type { Pod } from '@keelson/kinds';
import type { PodSource } from '../base/contracts/pod-source.ts';
import { Repeater } from '../base/repeater.ts';
import { listManifests, type ManifestFile } from './list-manifests.ts';
import { ManifestError } from './manifest-error.ts';
import { parseManifests } from './parse-manifest.ts';
import { PathWatch } from './path-watch.ts';
import { podsOfManifests, withoutDuplicates } from './pod-set.ts';
import { refuseDuplicate, type SourceOptions } from './source-options.ts';

export interface FileSourceOptions extends SourceOptions {
  /** A directory, or one file. */
  readonly path: string;
  readonly periodMs: number;
}

interface KnownFile {
  readonly bytes: Buffer;
  readonly pods: readonly Pod[];
}

/**
 * Pods of a file, or of the files of a directory: names with a leading dot and subdirectories are passed over. The path
 * is read again each period, and as soon as the system tells of a change. A path that does not exist is a source
 * without pods.
 *
 * A file may have several YAML documents; those that are refused do not keep the others from running. A file that
 * cannot be read or understood is reported and has no pods; one that was good before keeps its pods until all of it
 * is good again or gone, so that a manifest which is being written over does not end the pod it describes.
 */
export class FileSource implements PodSource {
  readonly name = 'file';
  readonly #options: FileSourceOptions;
  readonly #repeater: Repeater;
  readonly #watch: PathWatch;
  #known = new Map<string, KnownFile>();
  #delivered = false;

  constructor(options: FileSourceOptions) {
    this.#options = options;
    const { clock, periodMs, logger, path } = options;
    this.#repeater = new Repeater({ clock, periodMs, logger, what: 'reading manifests', run: () => this.#read() });
    this.#watch = new PathWatch(path, clock, () => this.#repeater.now());
  }

  async start(): Promise<void> {
    this.#repeater.start();
  }

  async stop(): Promise<void> {
    this.#watch.close();
    await this.#repeater.stop();
  }

  async #read(): Promise<void> {
    const { path, sink, logger } = this.#options;
    // Before the list, so that no change falls between the two.
    await this.#watch.arm();
    const files = await listManifests(path);
    const known = new Map<string, KnownFile>();
    let changed = !this.#delivered;
    for (const file of files) {
      const before = this.#known.get(file.path);
      const now = this.#podsOf(file, before);
      if (now !== before) changed = true;
      if (now !== undefined) known.set(file.path, now);
    }
    if (known.size !== this.#known.size) changed = true;
    this.#known = known;
    if (!changed || this.#repeater.stopped) return;
    const pods = [...known.values()].flatMap((file) => file.pods);
    logger.debug('manifests read', { source: this.name, files: files.length, pods: pods.length });
    sink(withoutDuplicates(pods, refuseDuplicate(this.#options, this.name)));
    this.#delivered = true;
  }

  #podsOf({ path, content }: ManifestFile, before: KnownFile | undefined): KnownFile | undefined {
    const { logger, nodeName } = this.#options;
    if (content instanceof Error) {
      logger.warn('manifest cannot be read', { manifest: path, err: content });
      return before;
    }
    if (before?.bytes.equals(content)) return before;
    const origin = { nodeName, source: 'file', place: `file:${path}` } as const;
    try {
      const { items, problems: refused } = parseManifests(content);
      for (const problem of refused) logger.warn('manifest refused', { manifest: origin.place, ...problem });
      if (items.length === 0 && refused.length === 0) throw new ManifestError('has no pod');
      const { pods, problems } = podsOfManifests(items, origin, logger);
      const isBad = problems.length > 0 || refused.length > 0;
      return { bytes: content, pods: isBad && before !== undefined ? before.pods : pods };
    } catch (error) {
      if (!(error instanceof ManifestError)) throw error;
      logger.warn('manifest refused', { manifest: origin.place, problem: error.message });
      return { bytes: content, pods: before?.pods ?? [] };
    }
  }
}
