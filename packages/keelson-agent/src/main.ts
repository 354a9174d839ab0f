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
import { type Logger, systemClock } from '@keelson/core/runtime';
import { createPinoLogger, errorText } from '@keelson/pino-logger';
import { type OpenedRuntime, openRuntime } from './runtime/open-runtime.ts';
import { runtimeCgroupWarning, runtimeProcess } from './runtime/runtime-process.ts';
import { type RuntimeVariables, runtimeRequest } from './runtime/runtime-request.ts';
import { type CriSocketVariables, criSocketOf, serveRuntime } from './runtime/serve-cri.ts';
import { isServiceProxyOn, type ServiceProxyVariables, serveServices } from './services/serve-services.ts';

/** Streams, signals, environment variables and system paths that the command uses; tests replace them. */
export interface CommandContext extends RuntimeVariables, CriSocketVariables, ServiceProxyVariables {
  readonly stdout: (text: string) => void;
  readonly stderr: (text: string) => void;
  /** Resolves when the process receives SIGTERM or SIGINT. */
  readonly terminated: Promise<void>;
  /** `KEELSON_AGENT_LOG_ROOT`: directory below which container logs are written; undefined: a default. */
  readonly logRoot: string | undefined;
  /** The kernel's table of swap spaces. */
  readonly swapsPath: string;
  /** Directory of the kernel's settings. */
  readonly sysctlRoot: string;
  /** Mount point of the cgroup hierarchies. */
  readonly cgroupRoot: string;
}

/** The directory that log collectors read, for an agent that may write there. */
const systemLogRoot = '/var/log';

async function defaultLogRoot(rootDir: string): Promise<string> {
  try {
    await access(systemLogRoot, constants.W_OK);
    return systemLogRoot;
  } catch {
    return join(rootDir, 'log');
  }
}

async function serve(args: readonly string[], context: CommandContext, logger: Logger): Promise<number> {
  const parsed = parseOptions(args);
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
  const { sysctlRoot, terminated } = context;
  const ownProcess = await prepareProcess({
    config: config.process,
    rootDir: config.rootDir,
    sysctlRoot,
    terminated,
    clock: systemClock,
    logger,
  });
  if (ownProcess === undefined) return 0;
  try {
    return await runUntilEnded(resolved, dynamic, ownProcess, context, logger);
  } finally {
    await ownProcess.release();
  }
}

async function runUntilEnded(
  { config, values }: ResolvedConfig,
  dynamicConfig: DynamicConfig | undefined,
  ownProcess: PreparedProcess,
  context: CommandContext,
  logger: Logger,
): Promise<number> {
  const clock = systemClock;
  const request = runtimeRequest(config, context);
  const socketPath = criSocketOf(config, context);
  const withServices = isServiceProxyOn(config, context);
  // Not injected: keeps the process alive, because the timers of the agent do not.
  const keepAlive = setInterval(() => {}, 2 ** 30);
  const ending = new AbortController();
  void Promise.race([context.terminated, ownProcess.ended]).then(() => ending.abort());
  let opened: OpenedRuntime | undefined;
  try {
    await joinCluster({ config, clock, logger, signal: ending.signal });
    if (ending.signal.aborted) return 0;
    const tree = await openCgroups({ config: config.cgroups, mountpoint: context.cgroupRoot, clock, logger });
    const runtime = await openRuntime({ config, request, cgroupMountpoint: tree?.mountpoint, clock, logger });
    opened = runtime;
    const { engine } = runtime;
    const cgroupWarning = runtimeCgroupWarning(config, runtime, engine.runtime.name);
    if (cgroupWarning !== undefined) logger.warn(cgroupWarning);
    const processes = processTable('/proc');
    const runtimePid = () => runtimeProcess(runtime, config.rootDir, processes);
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
    const service = await serveRuntime({ engine, socketPath, logger });
    const { nodeName } = config;
    const services = withServices && agent.clients && serveServices({ ...agent.clients, nodeName, clock, logger });
    try {
      const { restart, failed, once = context.terminated } = agent;
      const ended = await Promise.race([context.terminated, ownProcess.ended, restart, failed, once]);
      if (typeof ended === 'number') logger.info('pods are running', { pods: ended });
    } finally {
      await service?.[Symbol.asyncDispose]();
      if (services) await services.stop();
      await agent.stop();
    }
    return 0;
  } finally {
    await opened?.engine.runtime[Symbol.asyncDispose]();
    clearInterval(keepAlive);
  }
}

/**
 * The `keelson-agent` command.
 *
 * @param args the arguments after the name of the program
 * @returns the exit code: 0 after a requested end, 1 after a failure, 2 for wrong usage
 */
export async function main(args: readonly string[], context: CommandContext): Promise<number> {
  // The level is fixed, because the agent has no option for it.
  const logger = createPinoLogger('info', { describe: errorText });
  try {
    return await serve(args, context, logger);
  } catch (error) {
    context.stderr(`keelson-agent: ${error instanceof Error ? error.message : String(error)}\n`);
    return error instanceof UsageError ? 2 : 1;
  }
}
