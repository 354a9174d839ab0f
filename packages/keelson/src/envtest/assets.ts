import { accessSync, constants, statSync } from 'node:fs';
import { chmod, mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { delimiter, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { UsageError } from '@keelson/core/internal';

export const envtestSynopsis = `keelson envtest [DIR]

Writes the executables kube-apiserver and etcd, and a link to kubectl if there is one on the PATH, into a directory
(default ./.keelson/envtest) and prints its path. Go suites that use envtest of controller-runtime then run on Keelson:

  KUBEBUILDER_ASSETS=$(npx keelson envtest) go test ./...
`;

const quoted = (word: string) => `'${word.replaceAll("'", "'\\''")}'`;

/**
 * Writes the executables that envtest starts. Each one becomes the process of Node, so that signals reach it.
 *
 * @returns the absolute path of the directory. @throws UsageError
 */
export async function writeEnvtestAssets(
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  const flag = words.find((word) => word.startsWith('-'));
  if (flag !== undefined) throw new UsageError(`unknown option ${flag}; keelson envtest accepts a directory only`);
  if (words.length > 1) throw new UsageError('keelson envtest accepts one directory');
  const directory = resolve(words[0] ?? join('.keelson', 'envtest'));
  const command = process.argv[1] ?? fileURLToPath(import.meta.url);
  try {
    await mkdir(directory, { recursive: true });
    for (const name of ['kube-apiserver', 'etcd']) {
      const script = `#!/bin/sh\nexec ${quoted(process.execPath)} ${quoted(resolve(command))} envtest ${name} "$@"\n`;
      await replace(join(directory, name), (path) => writeFile(path, script).then(() => chmod(path, 0o755)));
    }
    const kubectl = findProgram('kubectl', env['PATH'] ?? '');
    const link = join(directory, 'kubectl');
    if (kubectl !== undefined && kubectl !== link) await replace(link, (path) => symlink(kubectl, path));
  } catch (error) {
    throw new UsageError(`the executables cannot be written to ${directory}: ${(error as Error).message}`);
  }
  return directory;
}

/** Suites may start the executables at the same time, so that each is replaced at once. */
async function replace(path: string, write: (path: string) => Promise<void>): Promise<void> {
  const unfinished = `${path}.${process.pid}`;
  await rm(unfinished, { force: true });
  await write(unfinished);
  await rename(unfinished, path);
}

function findProgram(name: string, searched: string): string | undefined {
  return searched
    .split(delimiter)
    .map((folder) => resolve(folder, name))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return statSync(path).isFile();
      } catch {
        return false;
      }
    });
}
