import { readFile, rename, writeFile } from 'node:fs/promises';

let counter = 0;

/** Readers see the old contents or the new, never a part. What a dead writer leaves begins with a dot. */
export async function writeAtomically(folder: string, name: string, contents: string): Promise<void> {
  counter += 1;
  const temporary = `${folder}/.${name}-${process.pid}-${counter}`;
  await writeFile(temporary, contents, { mode: 0o600 });
  await rename(temporary, `${folder}/${name}`);
}

/** Undefined when there is no such file. */
export async function readIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
