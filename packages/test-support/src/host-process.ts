import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

/** A script in a process group of its own. */
export interface HostProcess<T> {
  /** The first line of output of the script, parsed as JSON. */
  readonly said: T;
  /** Kills the whole group, as a terminal or a service manager would; resolves when the script's process is gone. */
  kill(): Promise<void>;
}

/** Runs a Node script, to be killed later; resolves when it has reported that it is ready, by a line of JSON. */
export async function startHostProcess<T>(script: string, args: readonly string[]): Promise<HostProcess<T>> {
  const child = spawn(process.execPath, [script, ...args], { stdio: ['ignore', 'pipe', 'inherit'], detached: true });
  const exited = once(child, 'exit');
  const died = exited.then(([code, signal]) => {
    throw new Error(`${script} ended with ${code ?? signal} before it was ready`);
  });
  const [line] = (await Promise.race([once(createInterface({ input: child.stdout }), 'line'), died])) as [string];
  return {
    said: JSON.parse(line) as T,
    kill: async () => {
      process.kill(-Number(child.pid), 'SIGKILL');
      await exited;
    },
  };
}
