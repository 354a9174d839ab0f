import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '@keelson/container-host';
import { parseJson } from '@keelson/core/internal';

/** Storage of submitted manifests. */
export interface SubmittedManifests {
  load(): Promise<readonly unknown[]>;
  /** Resolves when they are durable on disk. */
  save(manifests: readonly unknown[]): Promise<void>;
}

/** One file that is replaced atomically: a reader finds the old set or the new one. */
export function submittedManifestsIn(directory: string): SubmittedManifests {
  const path = join(directory, 'submitted-manifests.json');
  return {
    async load() {
      let bytes: Buffer;
      try {
        bytes = await readFile(path);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
        throw error;
      }
      const { value } = parseJson(bytes);
      if (!Array.isArray(value))
        throw new Error(`${path} does not contain a list of manifests; remove it to start without submitted pods`);
      return value;
    },
    save: (manifests) => replaceFile(path, JSON.stringify(manifests)),
  };
}
