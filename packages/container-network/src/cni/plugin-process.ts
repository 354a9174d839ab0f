import { spawn } from 'node:child_process';
import type { RuntimeErrorCode } from '@keelson/container-runtime';
import { isJsonObject } from '@keelson/core/internal';
import { addAbortListener, removeAbortListener } from '@keelson/core/runtime';
import { NetworkError, type PluginFailure } from '../network-error.ts';
import type { JsonObject } from './network-list.ts';
import { programPath } from './program-path.ts';

type Command = PluginFailure['command'];

/** One call of a plugin. */
export interface PluginCall {
  /** Type of the plugin, for messages. */
  readonly plugin: string;
  readonly path: string;
  readonly command: Command;
  /** Environment variables in addition to CNI_COMMAND, such as CNI_CONTAINERID. */
  readonly variables: Readonly<Record<string, string>>;
  readonly input: JsonObject;
  /** When this signal is aborted, the plugin's processes are killed, and the call rejects with the signal's reason. */
  readonly signal: AbortSignal;
}

const maxOutputBytes = 1 << 20;

/** Error codes that CNI defines, and the corresponding codes of the runtime contract. */
const codes: Readonly<Record<number, RuntimeErrorCode>> = {
  1: 'InvalidArgument',
  2: 'InvalidArgument',
  3: 'NotFound',
  4: 'InvalidArgument',
  6: 'InvalidArgument',
  7: 'InvalidArgument',
  11: 'Unavailable',
};

/**
 * Calls plugins. `launch` is the command line prefix of plugins, such as `nsenter --net=...` to run them in another
 * network namespace than this process.
 */
export class PluginProcess {
  readonly #launch: readonly string[];

  constructor(launch: readonly string[] = []) {
    this.#launch = launch;
  }

  /**
   * Calls a plugin once.
   *
   * @returns its result; undefined when it returned none
   * @throws NetworkError with the plugin's own code and message, or the reason of the signal
   */
  async call(call: PluginCall): Promise<JsonObject | undefined> {
    const { exit, stdout, stderr } = await this.#run(call);
    const answer = parse(stdout);
    if (exit !== 0) throw failed(call, exit, answer, stdout, stderr);
    if (answer === undefined && stdout.trim() !== '') throw failed(call, exit, undefined, stdout, stderr);
    return answer;
  }

  #run(call: PluginCall): Promise<{ exit: number | string; stdout: string; stderr: string }> {
    const { command, variables, input, signal } = call;
    const [program = call.path, ...words] = [...this.#launch, call.path];
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      // A separate process group, so that the programs that a plugin starts can be killed with it.
      const child = spawn(program, words, {
        env: { PATH: programPath, ...variables, CNI_COMMAND: command },
        detached: true,
        stdio: 'pipe',
      });
      const stop = () => {
        if (child.pid === undefined) return;
        try {
          process.kill(-child.pid, 'SIGKILL');
        } catch {
          // The process has already ended.
        }
      };
      const stdout = collect(child.stdout, stop);
      const stderr = collect(child.stderr, stop);
      addAbortListener(signal, stop);
      child.stdin.on('error', () => {
        // A plugin need not read its input. Its exit code determines the result.
      });
      child.stdin.end(JSON.stringify(input));
      child.once('error', (cause) => {
        removeAbortListener(signal, stop);
        reject(new NetworkError('Unavailable', `failed to start plugin ${call.plugin}: ${cause.message}`, { cause }));
      });
      child.once('close', (code, killed) => {
        removeAbortListener(signal, stop);
        if (signal.aborted) reject(signal.reason);
        else resolve({ exit: code ?? killed ?? 'unknown', stdout: stdout(), stderr: stderr() });
      });
    });
  }
}

function collect(stream: NodeJS.ReadableStream, tooMuch: () => void): () => string {
  const chunks: Buffer[] = [];
  let size = 0;
  stream.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size > maxOutputBytes) tooMuch();
    else chunks.push(chunk);
  });
  return () => Buffer.concat(chunks).toString();
}

function parse(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function failed(
  { plugin, command }: PluginCall,
  exit: number | string,
  answer: JsonObject | undefined,
  stdout: string,
  stderr: string,
): NetworkError {
  const { code, msg, details } = answer ?? {};
  if (typeof code === 'number' && typeof msg === 'string') {
    const text = typeof details === 'string' && details !== '' ? `${msg}; ${details}` : msg;
    const failure = { plugin, command, pluginCode: code, pluginMessage: text };
    return new NetworkError(codes[code] ?? 'Internal', `plugin ${plugin} failed (${command}): ${text} (code ${code})`, {
      failure,
    });
  }
  const output = (stderr.trim() || stdout.trim() || 'no output').slice(-500);
  const how = exit === 0 ? 'returned no JSON result' : `exited with ${exit}`;
  return new NetworkError('Internal', `plugin ${plugin} ${how} (${command}): ${output}`, {
    failure: { plugin, command },
  });
}
