import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { buildGoTool } from '@keelson/test-support';
import { cleanEnvironment } from './keelson-process.ts';

/**
 * The crictl named by KEELSON_TEST_CRICTL, or one built from its Go modules; undefined where Go is missing or too old
 * for it.
 */
export function findCrictl(): string | undefined {
  return process.env['KEELSON_TEST_CRICTL'] ?? buildGoTool('crictl', 'sigs.k8s.io/cri-tools/cmd/crictl');
}

/** A crictl of one service of CRI. */
export class Crictl {
  readonly #command: string;
  readonly #global: readonly string[];

  constructor(command: string, socketPath: string) {
    this.#command = command;
    this.#global = ['--config', '/dev/null', '--runtime-endpoint', `unix://${socketPath}`, '--timeout', '30s'];
  }

  /** Runs one command; `code` is its exit code. */
  run(
    args: readonly string[],
    input = '',
  ): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }> {
    return new Promise((resolve) => {
      const options = { env: cleanEnvironment(), timeout: 60_000 };
      const child = execFile(this.#command, [...this.#global, ...args], options, (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : typeof error.code === 'number' ? error.code : 1, stdout, stderr }),
      );
      child.stdin?.on('error', () => {});
      child.stdin?.end(input);
    });
  }

  /** Forwards a port of a sandbox to one that the system chooses, which is reported. */
  async forward(args: readonly string[]): Promise<{ readonly port: number; readonly process: ChildProcess }> {
    const child = spawn(this.#command, [...this.#global, 'port-forward', ...args], {
      env: cleanEnvironment(),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)));
    for (;;) {
      const port = /Forwarding from 127\.0\.0\.1:(\d+)/.exec(output)?.[1];
      if (port !== undefined) return { port: Number(port), process: child };
      if (child.exitCode !== null) throw new Error(`crictl port-forward ended: ${output}`);
      await Promise.race([once(child.stdout, 'data'), once(child.stderr, 'data'), once(child, 'exit')]);
    }
  }
}
