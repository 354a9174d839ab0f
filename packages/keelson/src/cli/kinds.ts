import { readFile } from 'node:fs/promises';
import { isDocumentError, isJsonObject, parseYaml, toYaml, UsageError } from '@keelson/core/internal';
import { exportDefinitions, importDefinitions } from '@keelson/extensions';
import type { CustomResourceDefinition } from '@keelson/kinds';
import { loadKinds } from '../config/load-modules.ts';

const usage = 'use keelson kinds export MODULE..., or keelson kinds import FILE...';

/**
 * `kinds export` writes the kinds of modules as CustomResourceDefinitions; `kinds import` writes a module that declares
 * the kinds of definitions. What cannot be expressed is stated on stderr.
 */
export async function kindsCommand(
  [action, ...names]: readonly string[],
  io: { readonly stdout: (text: string) => void; readonly stderr: (text: string) => void },
): Promise<void> {
  if ((action !== 'export' && action !== 'import') || names.length === 0 || names.some((name) => name.startsWith('--')))
    throw new UsageError(`kinds: ${usage}`);
  const state = (notes: readonly string[]) => {
    for (const note of notes) io.stderr(`not expressed: ${note}\n`);
  };
  if (action === 'export') {
    const { definitions, notes } = exportDefinitions(await loadKinds(names, 'kinds export'));
    io.stdout(definitions.map((definition) => `---\n${toYaml(definition)}`).join(''));
    state(notes);
    return;
  }
  const definitions = (await Promise.all(names.map(readDefinitions))).flat();
  if (definitions.length === 0) throw new UsageError('kinds import: the files contain no CustomResourceDefinition');
  const { source, notes } = importDefinitions(definitions);
  io.stdout(source);
  state(notes);
}

async function readDefinitions(file: string): Promise<CustomResourceDefinition[]> {
  const bytes = await readFile(file).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`kinds import: ${file} cannot be read: ${error.message}`);
  });
  const documents = bytes
    .toString('utf8')
    .split(/^---.*$/m)
    .filter((document) => document.trim() !== '');
  return documents.flatMap((document) => {
    try {
      const { value } = parseYaml(Buffer.from(document));
      return isDefinition(value) ? [value] : [];
    } catch (error) {
      if (isDocumentError(error)) throw new UsageError(`kinds import: ${file}: ${error.message}`);
      throw error;
    }
  });
}

function isDefinition(value: unknown): value is CustomResourceDefinition {
  return (
    isJsonObject(value) &&
    value['kind'] === 'CustomResourceDefinition' &&
    value['apiVersion'] === 'apiextensions.k8s.io/v1' &&
    isJsonObject(value['spec']) &&
    Array.isArray(value['spec']['versions']) &&
    isJsonObject(value['spec']['names'])
  );
}
