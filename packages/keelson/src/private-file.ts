import { chmod, rename, writeFile } from 'node:fs/promises';

const ownerOnly = 0o600;

/** Replaces a file as a whole, readable by its owner only: a crash leaves the old one or the new one. */
export async function writePrivateFile(path: string, content: string | Buffer): Promise<void> {
  const temporary = `${path}.new`;
  await writeFile(temporary, content, { mode: ownerOnly });
  await chmod(temporary, ownerOnly);
  await rename(temporary, path);
}
