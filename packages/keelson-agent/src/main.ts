import { constants, existsSync, readFileSync } from 'node:fs';
import { access, mkdir } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import {
  bootConfig,
  type CgroupAccess,
  checkSwap,
  type DynamicConfig,
  effectiveOptions,
  helpText,
  joinCluster,
  openCgroups,
  type PreparedProcess,
  parseOptions,
  prepareProcess,
  processTable,
  type ResolvedConfig,
  runAgent,
  systemHost,
  UsageError,
  versionText,
} from '@keelson/agent';
import type { ContainerEngine } from '@keelson/container-runtime';
import { type Logger, systemClock } from '@keelson/core';
import { createLineLogger } from './line-logger.ts';
import { openEngine } from './runtime/open-runtime.ts';
import { runtimeProcess, withoutRuntimeProcess } from './runtime/runtime-process.ts';
import { runtimeGiven } from './runtime/runtime-request.ts';
import { criSocketOf, serveEngine } from './runtime/serve-cri.ts';

/** What the command gets from its process. */
export interface CommandContext {
  readonly stdout: (text: string) => void;
  readonly stderr: (text: string) => void;
  /** Resolves when the process is asked to end. */
  readonly terminated: Promise<void>;
  /** Below it are the logs of containers. */
  readonly logRoot: string | undefined;
  /** `engine`, `oci` or `process`: the runtime of the options' default, in place of what is found on the machine. */
  readonly runtime: string | undefined;
  /** Where the runtime is served as CRI, in place of the options' default; empty: nowhere. */
  readonly criSocket: string | undefined;
  /** The table of swap spaces. */
  readonly swapsPath: string;
  /** Directory of the kernel's settings. */
  readonly sysctlRoot: string;
  /** Where the hierarchies of cgroups are mounted. */
  readonly cgroupRoot: string;
}

/** Where log collectors look, for an agent that may write there. */
const systemLogRoot = '/var/log';

async function defaultLogRoot(rootDir: string): Promise<string> {
  try {
    await access(systemLogRoot, constants.W_OK);
    return systemLogRoot;
  } catch {
    return join(rootDir, 'log');
  }
}

async function serve(words: readonly string[], context: CommandContext, logger: Logger): Promise<number> {
  const parsed = parseOptions(words);
  if (parsed.help) {
    context.stdout(helpText());
    return 0;
  }
  if (parsed.values.version !== 'none') {
    context.stdout(versionText(parsed.values.version));
    return 0;
  }
  const facts = { hostname, fileExists: existsSync, readFile: readFileSync };
  const { resolved, dynamic } = await bootConfig({ commandLine: parsed, facts, logger });
  const { config, values, warnings } = resolved;
  for (const warning of warnings) logger.warn(warning);
  if (values['fail-swap-on']) await checkSwap(context.swapsPath);
  await mkdir(config.rootDir, { recursive: true, mode: 0o750 });
  const clock = systemClock;
  const { sysctlRoot, terminated } = context;
  const own = await prepareProcess({
    config: config.process,
    rootDir: config.rootDir,
    sysctlRoot,
    terminated,
    clock,
    logger,
  });
  if (own === undefined) return 0;
  try {
    return await runUntilEnded(resolved, dynamic, own, context, logger);
  } finally {
    await own.release();
  }
}

async function runUntilEnded(
  { config, values }: ResolvedConfig,
  dynamicConfig: DynamicConfig | undefined,
  own: PreparedProcess,
  context: CommandContext,
  logger: Logger,
): Promise<number> {
  const clock = systemClock;
  const choice = runtimeGiven(config.runtime, context.runtime);
  const socketPath = criSocketOf(config, context);
  // Holds the process: none of the agent's timers does.
  const holding = setInterval(() => {}, 2 ** 30);
  const ending = new AbortController();
  void Promise.race([context.terminated, own.ended]).then(() => ending.abort());
  let engine: ContainerEngine | undefined;
  try {
    await joinCluster({ config, clock, logger, signal: ending.signal });
    if (ending.signal.aborted) return 0;
    const tree = await openCgroups({ config: config.cgroups, mountpoint: context.cgroupRoot, clock, logger });
    engine = await openEngine({ config, choice, cgroupMountpoint: tree?.mountpoint, clock, logger });
    const { name } = engine.runtime;
    const meaningless = withoutRuntimeProcess(config, choice, name);
    if (meaningless !== undefined) logger.warn(meaningless);
    const processes = processTable('/proc');
    const runtimePid = () => runtimeProcess({ ...config, runtime: choice }, name, processes);
    const cgroups = tree && ({ tree, processes, agentPid: process.pid, runtimePid } satisfies CgroupAccess);
    const agent = await runAgent({
      config,
      effective: effectiveOptions(values, config.gates),
      engine,
      logRoot: context.logRoot ?? (await defaultLogRoot(config.rootDir)),
      hostActions: systemHost(),
      ...(cgroups && { cgroups }),
      ...(dynamicConfig === undefined ? {} : { dynamicConfig }),
      clock,
      logger,
    });
    logger.info('agent started', { node: config.nodeName, standalone: config.api === undefined, ...agent.servers });
    const service = await serveEngine({ engine, socketPath, logger });
    try {
      const { restart, failed, once = context.terminated } = agent;
      const ended = await Promise.race([context.terminated, own.ended, restart, failed, once]);
      if (typeof ended === 'number') logger.info('pods run', { pods: ended });
    } finally {
      await service?.[Symbol.asyncDispose]();
      await agent.stop();
    }
    return 0;
  } finally {
    await engine?.runtime[Symbol.asyncDispose]();
    clearInterval(holding);
  }
}

/**
 * The `keelson-agent` command.
 *
 * @returns the exit code: 0 ended as told, 1 failed, 2 called wrongly
 */
export async function main(words: readonly string[], context: CommandContext): Promise<number> {
  const logger = createLineLogger(context.stderr, () => systemClock.now());
  try {
    return await serve(words, context, logger);
  } catch (error) {
    if (error instanceof UsageError) {
      context.stderr(`keelson-agent: ${error.message}\n`);
      return 2;
    }
    context.stderr(`keelson-agent: ${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  }
}
