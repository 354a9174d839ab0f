import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '@keelson/container-host';
import { decoderOf, isDecodeTypeError, isDocumentError, parseYaml, toYaml } from '@keelson/core/internal';
import type { Logger } from '@keelson/core/runtime';
import { Pod } from '@keelson/kinds';

/** Annotation of the pods that are stored as checkpoints. */
export const checkpointAnnotation = 'node.kubernetes.io/bootstrap-checkpoint';

const fileForm = /^Pod_([A-Za-z0-9-]{1,64})\.yaml$/;

/**
 * Checkpoints of annotated pods of the API, one file each, so that a node can run them before the API server is
 * reachable, which may itself be one of these pods.
 */
export class Checkpoints {
  readonly #directory: string;
  readonly #logger: Logger;
  #kept: Map<string, string> | undefined;
  #turn: Promise<void> = Promise.resolve();

  constructor(directory: string, logger: Logger) {
    this.#directory = directory;
    this.#logger = logger;
  }

  /** Reads all checkpoints; files that cannot be read are skipped. */
  async load(): Promise<readonly Pod[]> {
    const names = await readdir(this.#directory).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [];
      throw error;
    });
    const pods = await Promise.all(names.filter((name) => fileForm.test(name)).map((name) => this.#read(name)));
    return pods.filter((pod) => pod !== undefined);
  }

  /** Replaces the checkpoints by these pods. Failures are only logged, since the pods run anyway. */
  save(pods: readonly Pod[]): Promise<void> {
    this.#turn = this.#turn
      .then(() => this.#save(pods))
      .catch((err: unknown) => this.#logger.warn('checkpoints cannot be written', { err }));
    return this.#turn;
  }

  /** Resolves when nothing is being written. */
  async settled(): Promise<void> {
    await this.#turn;
  }

  async #save(pods: readonly Pod[]): Promise<void> {
    this.#kept ??= new Map((await this.load()).map((pod) => [pod.metadata?.uid ?? '', '']));
    const known = this.#kept;
    const wanted = new Map(
      pods
        .filter(({ metadata }) => metadata?.annotations?.[checkpointAnnotation] === 'true')
        .map((pod) => [pod.metadata?.uid ?? '', pod]),
    );
    for (const [uid, pod] of wanted) {
      const { status, ...rest } = pod;
      const name = `Pod_${uid}.yaml`;
      const content = toYaml(rest).toString();
      if (known.get(uid) === content || !fileForm.test(name)) continue;
      await replaceFile(join(this.#directory, name), content);
      known.set(uid, content);
    }
    for (const uid of known.keys()) {
      if (wanted.has(uid)) continue;
      await rm(join(this.#directory, `Pod_${uid}.yaml`), { force: true });
      known.delete(uid);
    }
  }

  async #read(name: string): Promise<Pod | undefined> {
    const path = join(this.#directory, name);
    try {
      const { value, errors } = decoderOf(Pod.schema)(parseYaml(await readFile(path)).value);
      const uid = fileForm.exec(name)?.[1];
      if (errors.length === 0 && value.kind === 'Pod' && value.metadata?.uid === uid) return value;
      this.#logger.warn('a checkpoint was skipped', {
        path,
        problem: errors[0]?.message ?? 'it is not the pod of its name',
      });
    } catch (error) {
      if (!isDocumentError(error) && !isDecodeTypeError(error)) throw error;
      this.#logger.warn('a checkpoint was skipped', { path, problem: error.message });
    }
    return undefined;
  }
}
