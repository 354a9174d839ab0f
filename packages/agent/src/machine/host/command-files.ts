import { ProgramError, type RunProgram } from '../../base/run-program.ts';
import type { FileType, HostFiles } from './host-files.ts';

const types: Readonly<Record<string, FileType>> = {
  4000: 'directory',
  8000: 'file',
  a000: 'link',
  c000: 'socket',
  2000: 'charDevice',
  6000: 'blockDevice',
};

const text = (output: Buffer): string => output.toString('utf8').replace(/\n$/, '');
const octal = (mode: number): string => mode.toString(8).padStart(4, '0');

/** Files of another mount namespace, accessed by running GNU programs in it. */
export function commandFiles(run: RunProgram): HostFiles {
  const shell = (script: string, words: readonly string[], input?: Buffer) =>
    run('sh', ['-c', script, 'sh', ...words], input);
  const unlessFailed = async (program: string, words: readonly string[]) => {
    try {
      return text(await run(program, words));
    } catch (error) {
      // A program that could not be started proves nothing about a file.
      if (error instanceof ProgramError && error.exitCode !== undefined) return undefined;
      throw error;
    }
  };
  return {
    async info(path, links) {
      const found = await unlessFailed('stat', [...(links === 'follow' ? ['-L'] : []), '-c', '%f %g', '--', path]);
      if (found === undefined) return undefined;
      const [mode = '0', gid = '0'] = found.split(' ');
      const bits = Number.parseInt(mode, 16);
      return { type: types[(bits & 0xf000).toString(16)] ?? 'other', mode: bits & 0o7777, gid: Number(gid) };
    },
    realPath: async (path) => text(await run('readlink', ['-e', '--', path])),
    async list(directory) {
      const found = await run('find', [directory, '-mindepth', '1', '-maxdepth', '1', '-printf', '%y%f\\0']);
      const entries = found.toString('utf8').split('\0').slice(0, -1);
      return entries.map((entry) => ({ name: entry.slice(1), isDirectory: entry.startsWith('d') }));
    },
    read: (path) => run('cat', ['--', path]),
    async write(path, content, mode) {
      await shell('cat > "$1" && chmod "$2" "$1"', [path, octal(mode)], content);
    },
    async makeDirectory(path, mode) {
      const made = await shell('[ -d "$1" ] || { mkdir -p -m "$2" -- "$1" && echo made; }', [path, octal(mode)]);
      return text(made) === 'made';
    },
    async makeWithin(directory, name, mode) {
      const script = 'cd -P -- "$1" && [ "$(pwd -P)" = "$1" ] && { [ -d "./$2" ] || mkdir -m "$3" "./$2"; }';
      await shell(script, [directory, name, octal(mode)]);
    },
    async makeFile(path, mode) {
      await shell('[ -e "$1" ] || { : > "$1" && chmod "$2" "$1"; }', [path, octal(mode)]);
    },
    changeMode: async (path, mode) => void (await run('chmod', [octal(mode), '--', path])),
    changeGroup: async (path, gid) => void (await run('chgrp', [String(gid), '--', path])),
    readLink: (path) => unlessFailed('readlink', ['--', path]),
    makeLink: async (target, path) => void (await run('ln', ['-s', '--', target, path])),
    rename: async (from, to) => void (await run('mv', ['-T', '-f', '--', from, to])),
    remove: async (path) => void (await run('rm', ['-rf', '--', path])),
    async giveToGroup(path, gid) {
      const script =
        'find "$1" ! -type l -exec chgrp "$2" {} + && find "$1" -type d -exec chmod ug+rwx,g+s {} + && ' +
        'find "$1" ! -type l ! -type d -exec chmod ug+rw {} +';
      await shell(script, [path, String(gid)]);
    },
    async treeUsage(path) {
      const [bytes, inodes] = await Promise.all([
        run('du', ['-s', '-x', '-B1', '--', path]),
        run('du', ['-s', '-x', '--inodes', '--', path]),
      ]);
      return { bytes: Number.parseInt(text(bytes), 10), inodes: Number.parseInt(text(inodes), 10) };
    },
    async diskUsage(path) {
      const numbers = text(await run('stat', ['-f', '-c', '%S %b %a %c %d', '--', path]))
        .split(' ')
        .map(Number);
      const [size = 0, blocks = 0, available = 0, inodes = 0, inodesFree = 0] = numbers;
      return { capacityBytes: blocks * size, availableBytes: available * size, inodes, inodesFree };
    },
    device: async (path) => text(await run('stat', ['-L', '-c', '%d', '--', path])),
  };
}
