import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pod } from '@keelson/kinds';
import type { PodSource } from '../base/contracts/pod-source.ts';
import { Repeater } from '../base/repeater.ts';
import { ManifestError, maxManifestBytes, parseManifests } from './parse-manifest.ts';
import { PathWatch } from './path-watch.ts';
import { podsOfManifests, withoutDuplicates } from './pod-set.ts';
import { reportDuplicate, type SourceOptions } from './source-options.ts';

/** A file with its content, or the error of reading it. */
export interface ManifestFile {
  readonly path: string;
  readonly content: Buffer | Error;
}

/** True for errors which mean that a file does not exist. */
function isMissing(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOENT' || code === 'ENOTDIR';
}

/** Undefined for anything but a regular file: opening a pipe would wait for its writer. */
async function read(path: string): Promise<ManifestFile | undefined> {
  try {
    const found = await stat(path);
    if (!found.isFile()) return undefined;
    if (found.size > maxManifestBytes) throw new Error(`has more than ${maxManifestBytes} bytes`);
    return { path, content: await readFile(path) };
  } catch (error) {
    return isMissing(error) ? undefined : { path, content: error as Error };
  }
}

/**
 * The file itself, or the files of a directory in the order of their names, without names with a leading dot. Empty
 * when the path does not exist.
 *
 * @throws the error of the system call for a path that exists and cannot be read
 */
export async function listManifests(path: string): Promise<readonly ManifestFile[]> {
  try {
    const found = await stat(path);
    const paths = found.isDirectory()
      ? (await readdir(path))
          .filter((name) => !name.startsWith('.'))
          .sort()
          .map((name) => join(path, name))
      : [path];
    return (await Promise.all(paths.map(read))).filter((file) => file !== undefined);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

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
 * Pods of a file, or of the files of a directory; names with a leading dot and subdirectories are skipped. The path
 * is read each period, and when the operating system reports a change. A path that does not exist is a source
 * without pods.
 *
 * A file may have several YAML documents; invalid documents do not affect the others. A file that cannot be read or
 * parsed is reported and has no pods. If it was valid before, its pods remain until the whole file is valid again or
 * deleted, so that a manifest which is being overwritten does not end its pod.
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
    // Watch before listing, so that no change between the two is missed.
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
    sink(withoutDuplicates(pods, reportDuplicate(this.#options, this.name)));
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
      for (const problem of refused) logger.warn('manifest rejected', { manifest: origin.place, ...problem });
      if (items.length === 0 && refused.length === 0) throw new ManifestError('contains no pod');
      const { pods, problems } = podsOfManifests(items, origin, logger);
      const isBad = problems.length > 0 || refused.length > 0;
      return { bytes: content, pods: isBad && before !== undefined ? before.pods : pods };
    } catch (error) {
      if (!(error instanceof ManifestError)) throw error;
      logger.warn('manifest rejected', { manifest: origin.place, problem: error.message });
      return { bytes: content, pods: before?.pods ?? [] };
    }
  }
}
