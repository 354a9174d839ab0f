import {
  type ChildProcess,
  type ChildProcessByStdio,
  execFile,
  execFileSync,
  spawn,
  spawnSync,
} from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { buildGoTool } from '@keelson/test-support';
import { cleanEnvironment } from './keelson-process.ts';
import { readKubeconfig } from './read-kubeconfig.ts';

const works = (command: string): boolean =>
  spawnSync(command, ['version', '--client'], { stdio: 'ignore' }).status === 0;

let found: string | undefined;

/**
 * A kubectl of 1.2x or newer: the one named by KEELSON_TEST_KUBECTL, the one on the PATH, or one built from its Go
 * modules. Undefined when none is available; in CI that is an error, because a suite that silently shrinks proves
 * nothing.
 */
export function findKubectl(): string | undefined {
  found ??= process.env['KEELSON_TEST_KUBECTL'] ?? (works('kubectl') ? 'kubectl' : buildGoTool('kubectl'));
  if (found === undefined && process.env['CI'] !== undefined) {
    throw new Error(
      'no kubectl: put one on the PATH, name one in KEELSON_TEST_KUBECTL, or install Go so that it can be built',
    );
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
  #access: ReturnType<typeof readKubeconfig> | undefined;

  constructor(command: string, kubeconfig: string, home: string) {
    this.#command = command;
    this.#kubeconfig = kubeconfig;
    this.#home = home;
  }

  /** Runs one command and returns its output and exit code. */
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
      // A command that ends without reading its input closes the pipe; its exit code is the result.
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

  /** Creates objects in a namespace with one command; returns its stdout. */
  create(namespace: string, ...objects: readonly (object | undefined)[]): Promise<string> {
    const input = objects.map((object) => JSON.stringify(object)).join('\n');
    return this.run(['create', '-n', namespace, '-f', '-'], { input });
  }

  /** Runs one command with `-o json` and parses the answer. */
  async json<T = Record<string, unknown>>(args: readonly string[]): Promise<T> {
    return JSON.parse(await this.run([...args, '-o', 'json'])) as T;
  }

  /**
   * Creates an object without a command, which would use many times the processor time of this request; returns the
   * created one.
   */
  async post<T = Record<string, unknown>>(path: string, object: object): Promise<T> {
    this.#access ??= readKubeconfig(this.#kubeconfig);
    const { server, authority: ca, certificate: cert, key } = await this.#access;
    const headers = { 'content-type': 'application/json' };
    const sent = request(server + path, { method: 'POST', ca, cert, key, headers }).end(JSON.stringify(object));
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    const answer = await text(response);
    if (response.statusCode !== 201) throw new Error(`POST ${path} ended with ${response.statusCode}\n${answer}`);
    return JSON.parse(answer) as T;
  }

  /**
   * Starts a command that does not end by itself, such as `get -w`; lines arrive in `lines`, `waitFor` resolves when
   * one matches. Its input is `input`, and stays open after that.
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

  /**
   * Starts one command in a terminal of this size: rows, then columns. Typed text reaches the command unchanged once
   * it reads keys itself.
   */
  inTerminal(
    args: readonly string[],
    [rows, columns]: TerminalSize,
    options: { readonly env?: Readonly<Record<string, string>> } = {},
  ): CommandInTerminal {
    const place = join(this.#home, `terminal-${randomUUID()}`);
    const words = [this.#command, '--kubeconfig', this.#kubeconfig, ...args].map(quote).join(' ');
    const script = `tty > ${quote(place)}; stty rows ${rows} cols ${columns}; exec ${words}`;
    const child = spawn('script', ['-q', '-e', '-f', '-c', script, '/dev/null'], {
      env: this.#env({ SHELL: '/bin/sh', ...options.env }),
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    child.stdin.on('error', () => {});
    return new CommandInTerminal(child, place);
  }

  #env(extra: Readonly<Record<string, string>> = {}): Record<string, string> {
    // One thread saves a sixth of the processor time of a command.
    return cleanEnvironment({ GOMAXPROCS: '1', HOME: this.#home, ...extra });
  }
}

type TerminalSize = readonly [rows: number, columns: number];

const quote = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

/** A running command that has a terminal. */
export class CommandInTerminal {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #place: string;
  #shown = '';
  #check: () => void = () => {};

  constructor(child: ChildProcessByStdio<Writable, Readable, null>, place: string) {
    this.#child = child;
    this.#place = place;
    child.stdout.on('data', (chunk) => {
      this.#shown += String(chunk);
      this.#check();
    });
  }

  type(text: string): void {
    this.#child.stdin.write(text);
  }

  resize([rows, columns]: TerminalSize): void {
    const name = readFileSync(this.#place, 'utf8').trim();
    execFileSync('stty', ['-F', name, 'rows', String(rows), 'cols', String(columns)]);
  }

  /** Resolves with the output up to the end of the match; the next call continues after it. */
  async until(pattern: RegExp, timeoutMs = 60_000): Promise<string> {
    const deadline = Date.now() + timeoutMs;
    for (;;) {
      const match = pattern.exec(this.#shown);
      if (match !== null) {
        const end = match.index + match[0].length;
        const text = this.#shown.slice(0, end);
        this.#shown = this.#shown.slice(end);
        return text;
      }
      const left = deadline - Date.now();
      if (left <= 0) throw new Error(`nothing matches ${String(pattern)} in: ${JSON.stringify(this.#shown)}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.#check = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  async ended(): Promise<number | null> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      await new Promise((resolve) => this.#child.once('exit', resolve));
    }
    return this.#child.exitCode;
  }

  /** Hangs the terminal up. */
  async stop(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.ended();
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

  /** Resolves with the first line that matches, among those received and those that follow. */
  async waitFor(pattern: RegExp, timeoutMs = 30_000): Promise<string> {
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
