import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type CallOptions,
  type ContainerConfig,
  type ContainerEngine,
  type ContainerId,
  type ContainerRuntime,
  type ContainerState,
  type ContainerStatus,
  type ImageService,
  isRuntimeError,
  type LogLine,
  type PodSandboxConfig,
  parseLogLine,
  type RuntimeErrorCode,
  type SandboxId,
} from '@keelson/container-runtime';
import type { ConformanceCase } from '../suite/conformance-suite.ts';
import type { CommonSandbox, Intent, OpenedEngine, Program, RuntimeHarness, RuntimeRequirement } from './harness.ts';

/** Time limit for expected changes; much longer than a busy machine needs. */
export const conditionTimeoutMs = 20_000;
/** Pauses between checks grow up to this time, so that waiting costs a runtime little. */
const longestPauseMs = 100;

export type ContainerOverrides = Partial<Omit<ContainerConfig, 'image' | 'command' | 'args'>>;

/** The context of a running case. Generated names are unique within the case. */
export class RuntimeCaseContext {
  readonly harness: RuntimeHarness;
  readonly #log: (message: string) => void;
  #opened: OpenedEngine;
  #scratch: string | undefined;
  #common: Promise<CommonSandbox> | undefined;
  #names = 0;

  constructor(harness: RuntimeHarness, opened: OpenedEngine, log: (message: string) => void) {
    this.harness = harness;
    this.#opened = opened;
    this.#log = log;
    if (opened.common !== undefined) this.#common = Promise.resolve(opened.common);
  }

  get opened(): OpenedEngine {
    return this.#opened;
  }
  get engine(): ContainerEngine {
    return this.#opened.engine;
  }
  get runtime(): ContainerRuntime {
    return this.engine.runtime;
  }
  get images(): ImageService {
    return this.engine.images;
  }

  readonly log = (message: string): void => {
    this.#log(message);
  };

  /** Replaces the engine by another one on the same data. */
  async reopen(): Promise<void> {
    assert(this.harness.reopen, 'the case must require `reopen`');
    this.#opened = await this.harness.reopen(this.#opened);
  }

  readonly scratch = async (): Promise<string> => {
    this.#scratch ??= await this.harness.scratch(this.#opened);
    return this.#scratch;
  };

  readonly podConfig = (overrides: Partial<PodSandboxConfig> = {}): PodSandboxConfig => {
    this.#names += 1;
    const metadata = { name: `pod-${this.#names}`, namespace: 'suite', uid: `uid-${this.#names}`, attempt: 0 };
    return { metadata, ...overrides };
  };

  readonly sandbox = (overrides: Partial<PodSandboxConfig> = {}): Promise<SandboxId> => {
    return this.runtime.runPodSandbox(this.podConfig(overrides));
  };

  /** A sandbox for containers whose sandbox does not matter: the same for all of a case. */
  readonly commonSandbox = async (): Promise<SandboxId> => (await this.#commonSandbox()).id;

  readonly #commonSandbox = (): Promise<CommonSandbox> => {
    this.#common ??= (async () => {
      const logs = this.harness.capabilities.logs ? { logDirectory: join(await this.scratch(), 'logs') } : {};
      return { id: await this.sandbox(logs), ...logs };
    })();
    return this.#common;
  };

  readonly containerConfig = (program: Program | Intent, overrides: ContainerOverrides = {}): ContainerConfig => {
    this.#names += 1;
    const { image, command, args } = 'kind' in program ? this.harness.program(program) : program;
    return {
      metadata: { name: `container-${this.#names}`, attempt: 0 },
      image,
      ...(command !== undefined && { command }),
      ...(args !== undefined && { args }),
      ...overrides,
    };
  };

  readonly create = (
    sandboxId: SandboxId,
    program: Program | Intent,
    overrides?: ContainerOverrides,
  ): Promise<ContainerId> => {
    return this.runtime.createContainer(sandboxId, this.containerConfig(program, overrides));
  };

  readonly started = async (
    program: Program | Intent,
    overrides?: ContainerOverrides,
    sandboxId?: SandboxId,
  ): Promise<ContainerId> => {
    const id = await this.create(sandboxId ?? (await this.commonSandbox()), program, overrides);
    await this.runtime.startContainer(id);
    if ('kind' in program) await this.harness.settled?.(this.#opened, id, program);
    return id;
  };

  readonly script = (text: string): Program => {
    assert(this.harness.shell, 'the case must require `shell`');
    return this.harness.shell(text);
  };

  /** Runs a script to its end and returns its output and its final status. */
  readonly output = async (
    program: Program,
    overrides: ContainerOverrides = {},
  ): Promise<{ stdout: string; stderr: string; status: ContainerStatus; lines: LogLine[] }> => {
    const { id: sandboxId, logDirectory } = await this.#commonSandbox();
    assert(logDirectory, 'the case must require `logs`');
    // Logs of earlier cases may remain in the folder, and a container appends to a log that exists.
    const logPath = `${randomUUID()}.log`;
    const id = await this.create(sandboxId, program, { logPath, ...overrides });
    await this.runtime.startContainer(id);
    const status = await this.waitFor(id, 'exited');
    const log = join(logDirectory, logPath);
    await this.until(
      'the log is complete',
      async () => (await this.harness.logIsComplete?.(this.#opened, log)) ?? true,
    );
    const lines = await readLog(log);
    return { stdout: joinLog(lines, 'stdout').toString(), stderr: joinLog(lines, 'stderr').toString(), status, lines };
  };

  readonly waitFor = async (id: ContainerId, state: ContainerState): Promise<ContainerStatus> => {
    return this.until(`container is ${state}`, async () => {
      const status = await this.runtime.containerStatus(id);
      return status.state === state ? status : undefined;
    });
  };

  /** Polls `check` until its result is neither undefined nor false, and returns the result. */
  readonly until = async <T>(what: string, check: () => Promise<T | undefined | false>): Promise<T> => {
    const deadline = performance.now() + conditionTimeoutMs;
    for (let pauseMs = 10; ; pauseMs = Math.min(longestPauseMs, pauseMs * 1.5)) {
      const result = await check();
      if (result !== undefined && result !== false) return result;
      if (performance.now() > deadline) assert.fail(`waited ${conditionTimeoutMs} ms for: ${what}`);
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  };

  /** Runs a command in the container and returns its output. */
  readonly exec = async (id: ContainerId, command: readonly string[], options?: CallOptions): Promise<string> => {
    const { stdout, stderr, exitCode } = await this.runtime.execSync(id, { command }, options);
    assert.equal(exitCode, 0, `exit code of ${command.join(' ')}: ${Buffer.from(stderr).toString()}`);
    return Buffer.from(stdout).toString();
  };
}

/** One statement about every runtime. */
export interface RuntimeCase extends ConformanceCase<RuntimeCaseContext, RuntimeRequirement> {
  /**
   * Present when the case proves nothing about sandboxes, lists of them, event streams and a new engine, so that it may
   * run on an engine and in a sandbox that earlier cases have used ({@link RuntimeHarness.openCommon}).
   */
  readonly isCommon?: true;
}

/** Asserts that the call fails with one of these codes. */
export async function refused(call: Promise<unknown>, ...codes: RuntimeErrorCode[]): Promise<void> {
  const error = await call.then(
    () => assert.fail(`succeeded, but ${codes.join(' or ')} was expected`),
    (reason: unknown) => reason,
  );
  if (!isRuntimeError(error)) throw error;
  assert(
    codes.includes(error.code),
    `refused with ${error.code} ("${error.message}") instead of ${codes.join(' or ')}`,
  );
}

/** Reads the entries of a log file; every line must be one. */
export async function readLog(path: string): Promise<LogLine[]> {
  const bytes = await readFile(path);
  const lines: LogLine[] = [];
  for (let begin = 0; begin < bytes.length; ) {
    const end = bytes.indexOf(0x0a, begin);
    assert(end >= 0, 'the log file ends with a whole line');
    const line = parseLogLine(bytes.subarray(begin, end));
    assert(line, `not an entry of a log: ${bytes.toString('utf8', begin, Math.min(end, begin + 80))}`);
    lines.push(line);
    begin = end + 1;
  }
  return lines;
}

/** Returns the exact output of the process. */
export function joinLog(lines: readonly LogLine[], stream: 'stdout' | 'stderr'): Buffer {
  const parts: Buffer[] = [];
  for (const line of lines) {
    if (line.stream !== stream) continue;
    parts.push(line.text);
    if (!line.partial) parts.push(Buffer.from('\n'));
  }
  return Buffer.concat(parts);
}
