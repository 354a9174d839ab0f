import { spawnSync } from 'node:child_process';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { UsageError } from '@keelson/core/internal';
import { type Ask, askTerminal, type Command, help, type ProjectChoices, readCommand } from './choices.ts';
import { projectFiles, type Versions } from './project-files.ts';

/** Runs the command; returns its exit code. */
export async function main(words: readonly string[]): Promise<number> {
  try {
    const ask: Ask | undefined = process.stdin.isTTY ? askTerminal : undefined;
    const command = await readCommand(words, ask);
    if (command === undefined) process.stdout.write(help);
    else return await create(command);
    return 0;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`create-keelson: ${error.message}\n`);
    return 2;
  }
}

async function create({ choices, install }: Command): Promise<number> {
  const folder = resolve(choices.name);
  const files = projectFiles(choices, await versions());
  await writeProject(folder, files);
  process.stdout.write(`Created ${choices.name} with ${files.size} files.\n`);
  if (install && !(npm(folder, 'install', '--no-audit', '--no-fund') && npm(folder, 'test', '--silent'))) return 1;
  process.stdout.write(nextSteps(choices, install));
  return 0;
}

/** @throws UsageError when the folder has content */
async function writeProject(folder: string, files: ReadonlyMap<string, string>): Promise<void> {
  const present = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw new UsageError(`${folder} is not a folder; choose another name`);
  });
  if (present.length > 0) throw new UsageError(`${folder} is not empty; choose another name`);
  for (const [path, text] of files) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
}

/** The versions that this package was tested with. */
async function versions(): Promise<Versions> {
  const { version } = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8')) as {
    readonly version: string;
  };
  return { keelson: version, typescript: '7.0.2', nodeTypes: '20.19.0' };
}

/** Runs npm in the project and shows its output. False when npm fails. */
function npm(folder: string, ...args: string[]): boolean {
  // On Windows npm is a batch file (npm.cmd), which only the command interpreter can run.
  const { status } = spawnSync('npm', args, { cwd: folder, stdio: 'inherit', shell: process.platform === 'win32' });
  return status === 0;
}

const nextSteps = ({ name }: ProjectChoices, installed: boolean) => `
Next:
  cd ${name}${installed ? '' : '\n  npm install\n  npm test'}
  npm run dev       # serves on https://127.0.0.1:6443, and restarts after each change
  npm run sample    # in a second terminal, with kubectl
`;
