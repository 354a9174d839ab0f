import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { buildGoTool } from './go-tool.ts';
import { cleanEnvironment } from './keelson-process.ts';

const works = (command: string): boolean => spawnSync(command, ['version', '--client'], { stdio: 'ignore' }).status === 0;

/**
 * A kubectl of 1.2x or newer: the one named by KEELSON_TEST_KUBECTL, the one on the PATH, or one built from its Go modules.
 * Undefined when none can be had; in CI that is an error, because a suite that silently shrinks proves nothing.
 */
export function findKubectl(): string | undefined {
  const named = process.env['KEELSON_TEST_KUBECTL'];
  const found = named ?? (works('kubectl') ? 'kubectl' : buildGoTool('kubectl'));
  if (found === undefined && process.env['CI'] !== undefined) {
    throw new Error('no kubectl: put one on the PATH, name one in KEELSON_TEST_KUBECTL, or install Go so that it can be built');
  }
  return found;
}

export interface KubectlResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A kubectl bound to one kubeconfig, with a home directory of its own. */
export class Kubectl {
  readonly #command: string;
  readonly #kubeconfig: string;
  readonly #home: string;

  constructor(command: string, kubeconfig: string, home: string) {
    this.#command = command;
    this.#kubeconfig = kubeconfig;
    this.#home = home;
  }

  /** Runs one command and returns what it printed, whatever its exit code. */
  try(
    args: readonly string[],
    options: { readonly input?: string; readonly env?: Readonly<Record<string, string>> } = {},
  ): Promise<KubectlResult> {
    return new Promise((resolve) => {
      const child = execFile(
        this.#command,
        ['--kubeconfig', this.#kubeconfig, ...args],
        { env: this.#env(options.env), timeout: 60_000, maxBuffer: 64 * 1024 * 1024 },
        (error, stdout, stderr) =>
          resolve({ code: error === null ? 0 : typeof error.code === 'number' ? error.code : 1, stdout, stderr }),
      );
      // A command that ends without reading its input closes the pipe; its exit code says all there is to say.
      child.stdin?.on('error', () => {});
      child.stdin?.end(options.input ?? '');
    });
  }

  /** Runs one command that must succeed; returns its stdout. */
  async run(
    args: readonly string[],
    options: { readonly input?: string; readonly env?: Readonly<Record<string, string>> } = {},
  ): Promise<string> {
    const { code, stdout, stderr } = await this.try(args, options);
    if (code !== 0) throw new Error(`kubectl ${args.join(' ')} ended with ${code}\n${stdout}${stderr}`);
    return stdout;
  }

  /** Runs one command with `-o json` and parses the answer. */
  async json<T = Record<string, unknown>>(args: readonly string[]): Promise<T> {
    return JSON.parse(await this.run([...args, '-o', 'json'])) as T;
  }

  /**
   * Starts a command that goes on, such as `get -w`; lines arrive in `lines`, `waitFor` resolves when one matches. Its input is `input`, and
   * stays open after that.
   */
  follow(
    args: readonly string[],
    options: { readonly input?: string; readonly env?: Readonly<Record<string, string>> } = {},
  ): FollowedCommand {
    const { input } = options;
    const child = spawn(this.#command, ['--kubeconfig', this.#kubeconfig, ...args], {
      env: this.#env(options.env),
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    });
    child.stdin?.on('error', () => {});
    child.stdin?.write(input ?? '');
    return new FollowedCommand(child);
  }

  #env(extra: Readonly<Record<string, string>> = {}): Record<string, string> {
    return cleanEnvironment({ HOME: this.#home, ...extra });
  }
}

/** A running command whose output is read line by line. */
export class FollowedCommand {
  readonly lines: string[] = [];
  readonly #child: ChildProcess;
  #partial = '';
  #onLine: () => void = () => {};

  constructor(child: ChildProcess) {
    this.#child = child;
    child.stdout?.on('data', (chunk) => {
      const parts = (this.#partial + String(chunk)).split('\n');
      this.#partial = parts.pop() ?? '';
      this.lines.push(...parts);
      this.#onLine();
    });
  }

  /** Resolves with the first line that matches, already seen or yet to come. */
  async waitFor(pattern: RegExp, timeoutMs = 20_000): Promise<string> {
    const deadline = Date.now() + timeoutMs;
    for (;;) {
      const line = this.lines.find((candidate) => pattern.test(candidate));
      if (line !== undefined) return line;
      const left = deadline - Date.now();
      if (left <= 0) throw new Error(`no line matches ${String(pattern)} in:\n${this.lines.join('\n')}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.#onLine = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  /** The exit code of a command that ends by itself; null when a signal ended it. */
  async ended(): Promise<number | null> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      await new Promise((resolve) => this.#child.once('exit', resolve));
    }
    return this.#child.exitCode;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.kill('SIGTERM');
    await gone;
  }
}
