import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseJson } from '@keelson/core';
import { replaceFile } from '../base/replace-file.ts';

/** Where submitted manifests are kept. */
export interface SubmittedManifests {
  load(): Promise<readonly unknown[]>;
  /** Resolves when they would survive the end of the machine. */
  save(manifests: readonly unknown[]): Promise<void>;
}

/** One file, replaced as a whole: whoever reads it finds the old set or the new one. */
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
        throw new Error(`${path} does not hold a list of manifests; remove it to start without any`);
      return value;
    },
    save: (manifests) => replaceFile(path, JSON.stringify(manifests)),
  };
}
