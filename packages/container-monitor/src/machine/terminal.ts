import { readFile } from 'node:fs/promises';
import { findTool, tool, tryTool } from '@keelson/container-host';
import type { TerminalSize } from '@keelson/container-runtime';

/** Whether the programs that give a process a terminal are installed and work; tested by running them. */
export async function terminalsWork(): Promise<boolean> {
  if (!['script', 'stty', 'tty'].every((name) => findTool(name) !== undefined)) return false;
  const [, ...args] = withTerminal(['tty']);
  return (await tryTool('script', args)) === undefined;
}

/** Quotes a text as one word of a POSIX shell. */
export function quote(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}

/**
 * The command line that runs `command` in a new session with its own terminal, and exits with the code of `command`.
 * Its standard streams are the other side of the terminal; the end of its input is sent to the terminal as a character.
 */
export function withTerminal(command: readonly string[]): string[] {
  // `script` runs the command in a shell, and its typescript is discarded.
  return [tool('script'), '-q', '-e', '-f', '-c', `exec ${command.map(quote).join(' ')}`, '/dev/null'];
}

/**
 * Returns a function that sets the size of the terminal whose name, such as `/dev/pts/3`, is the content of `file`. The
 * kernel then sends SIGWINCH to the foreground processes. While one change is running, only the latest size is
 * retained. A missing terminal is not an error.
 */
export function terminalResizer(file: string): (size: TerminalSize) => void {
  let next: TerminalSize | undefined;
  let busy = false;
  const work = async () => {
    busy = true;
    for (let size = next; size !== undefined; size = next) {
      next = undefined;
      const name = (await readFile(file, 'utf8').catch(() => '')).trim();
      if (!name.startsWith('/dev/')) continue;
      await tryTool('stty', ['-F', name, 'rows', String(size.height), 'cols', String(size.width)]);
    }
    busy = false;
  };
  return (size) => {
    next = size;
    if (!busy) void work();
  };
}
