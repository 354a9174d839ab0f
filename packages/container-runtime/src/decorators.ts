import { addAbortListener, type Clock, type Metrics, removeAbortListener, systemClock } from '@keelson/core/runtime';
import type { CallOptions } from './call-options.ts';
import type { ContainerEngine, ContainerRuntime } from './container-runtime.ts';
import type { RuntimeStreaming } from './exec.ts';
import type { ImageService } from './image-service.ts';
import { RuntimeError, toRuntimeError } from './runtime-error.ts';

/**
 * The options that the callee receives. The signal is created on first access, because most calls end before they are
 * aborted and never read it.
 */
function innerOptions(): { readonly options: CallOptions; abort(failure: RuntimeError): void } {
  let controller: AbortController | undefined;
  let failure: RuntimeError | undefined;
  return {
    options: {
      get signal() {
        if (controller === undefined) {
          controller = new AbortController();
          if (failure !== undefined) controller.abort(failure);
        }
        return controller.signal;
      },
    },
    abort(reason) {
      failure = reason;
      controller?.abort(reason);
    },
  };
}

/**
 * Limits a call by the signal and the timeout of `options`. The callee receives a signal that is aborted at the limit.
 * Its result is not awaited after that, so a callee that ignores the signal does not delay the caller.
 * @throws `Aborted`, `DeadlineExceeded`
 */
export function boundedCall<T>(
  clock: Clock,
  call: string,
  options: CallOptions,
  run: (options: CallOptions) => Promise<T>,
): Promise<T> {
  const { signal, timeoutMs } = options;
  if (signal === undefined && timeoutMs === undefined) return run(options);
  if (signal?.aborted)
    return Promise.reject(new RuntimeError('Aborted', `${call}: the caller gave up`, { cause: signal.reason }));
  const inner = innerOptions();
  return new Promise<T>((resolve, reject) => {
    let cancelTimer = () => {};
    const settle = () => {
      cancelTimer();
      removeAbortListener(signal, onAbort);
    };
    const giveUp = (error: RuntimeError) => {
      settle();
      reject(error);
      inner.abort(error);
    };
    const onAbort = () => giveUp(new RuntimeError('Aborted', `${call}: the caller gave up`, { cause: signal?.reason }));
    addAbortListener(signal, onAbort);
    if (timeoutMs !== undefined) {
      const late = () => giveUp(new RuntimeError('DeadlineExceeded', `${call}: no answer within ${timeoutMs} ms`));
      cancelTimer = clock.after(timeoutMs, late);
    }
    run(inner.options).then(
      (value) => {
        settle();
        resolve(value);
      },
      (error: unknown) => {
        settle();
        reject(error);
      },
    );
  });
}

/** Methods of an engine that return a promise; the event stream is not among them. */
export type RuntimeCall =
  | Exclude<keyof ContainerRuntime, 'name' | 'capabilities' | 'streaming' | 'events' | typeof Symbol.asyncDispose>
  | keyof RuntimeStreaming
  | keyof ImageService;

/** Wraps a call: executes `run` with `options`, changed or unchanged, and adds actions before and after it. */
export type Around = <T>(
  call: RuntimeCall,
  options: CallOptions,
  run: (options: CallOptions) => Promise<T>,
) => Promise<T>;

/**
 * Wraps every call of an engine. Optional methods that the engine lacks remain absent, in accordance with its
 * capabilities. Disposing of the decorated runtime disposes of the inner one.
 */
export function decorateEngine(engine: ContainerEngine, around: Around): ContainerEngine {
  return { runtime: decorateRuntime(engine.runtime, around), images: decorateImages(engine.images, around) };
}

function decorateRuntime(inner: ContainerRuntime, around: Around): ContainerRuntime {
  const { updateConfig, updateContainerResources, events } = inner;
  return {
    name: inner.name,
    capabilities: inner.capabilities,
    streaming: decorateStreaming(inner.streaming, around),
    version: (options = {}) => around('version', options, (o) => inner.version(o)),
    status: (options = {}) => around('status', options, (o) => inner.status(o)),
    runPodSandbox: (config, options = {}) => around('runPodSandbox', options, (o) => inner.runPodSandbox(config, o)),
    stopPodSandbox: (id, options = {}) => around('stopPodSandbox', options, (o) => inner.stopPodSandbox(id, o)),
    removePodSandbox: (id, options = {}) => around('removePodSandbox', options, (o) => inner.removePodSandbox(id, o)),
    podSandboxStatus: (id, options = {}) => around('podSandboxStatus', options, (o) => inner.podSandboxStatus(id, o)),
    listPodSandboxes: (filter, options = {}) =>
      around('listPodSandboxes', options, (o) => inner.listPodSandboxes(filter, o)),
    createContainer: (sandboxId, config, options = {}) =>
      around('createContainer', options, (o) => inner.createContainer(sandboxId, config, o)),
    startContainer: (id, options = {}) => around('startContainer', options, (o) => inner.startContainer(id, o)),
    stopContainer: (id, request, options = {}) =>
      around('stopContainer', options, (o) => inner.stopContainer(id, request, o)),
    removeContainer: (id, options = {}) => around('removeContainer', options, (o) => inner.removeContainer(id, o)),
    listContainers: (filter, options = {}) => around('listContainers', options, (o) => inner.listContainers(filter, o)),
    containerStatus: (id, options = {}) => around('containerStatus', options, (o) => inner.containerStatus(id, o)),
    reopenContainerLog: (id, options = {}) =>
      around('reopenContainerLog', options, (o) => inner.reopenContainerLog(id, o)),
    execSync: (id, request, options = {}) => around('execSync', options, (o) => inner.execSync(id, request, o)),
    listContainerStats: (filter, options = {}) =>
      around('listContainerStats', options, (o) => inner.listContainerStats(filter, o)),
    ...(updateConfig && {
      updateConfig: (config: { readonly podCidr?: string }, options: CallOptions = {}) =>
        around('updateConfig', options, (o) => updateConfig.call(inner, config, o)),
    }),
    ...(updateContainerResources && {
      updateContainerResources: ((id, resources, options = {}) =>
        around('updateContainerResources', options, (o) =>
          updateContainerResources.call(inner, id, resources, o),
        )) satisfies ContainerRuntime['updateContainerResources'],
    }),
    ...(events && { events: (options?: { readonly signal?: AbortSignal }) => events.call(inner, options) }),
    [Symbol.asyncDispose]: () => inner[Symbol.asyncDispose](),
  };
}

function decorateStreaming(inner: RuntimeStreaming, around: Around): RuntimeStreaming {
  const { exec, attach, portForward } = inner;
  return {
    ...(exec && {
      exec: ((id, request, options = {}) =>
        around('exec', options, (o) => exec.call(inner, id, request, o))) satisfies RuntimeStreaming['exec'],
    }),
    ...(attach && {
      attach: ((id, request, options = {}) =>
        around('attach', options, (o) => attach.call(inner, id, request, o))) satisfies RuntimeStreaming['attach'],
    }),
    ...(portForward && {
      portForward: ((id, port, options = {}) =>
        around('portForward', options, (o) =>
          portForward.call(inner, id, port, o),
        )) satisfies RuntimeStreaming['portForward'],
    }),
  };
}

function decorateImages(inner: ImageService, around: Around): ImageService {
  return {
    listImages: (reference, options = {}) => around('listImages', options, (o) => inner.listImages(reference, o)),
    imageStatus: (reference, options = {}) => around('imageStatus', options, (o) => inner.imageStatus(reference, o)),
    pullImage: (reference, request, options = {}) =>
      around('pullImage', options, (o) => inner.pullImage(reference, request, o)),
    removeImage: (reference, options = {}) => around('removeImage', options, (o) => inner.removeImage(reference, o)),
    imageFsInfo: (options = {}) => around('imageFsInfo', options, (o) => inner.imageFsInfo(o)),
  };
}

/** Calls whose duration depends on the request rather than on the runtime: they have no default deadline. */
const unbounded: ReadonlySet<RuntimeCall> = new Set([
  'pullImage',
  'execSync',
  'exec',
  'attach',
  'portForward',
  'stopContainer',
]);

/** Options of {@link withDeadlines}. */
export interface DeadlineOptions {
  readonly clock?: Clock;
  /** Deadline of calls without `timeoutMs`, except calls that may take long; absent: no deadline. */
  readonly defaultTimeoutMs?: number;
}

/**
 * Ends every call at its deadline and when its signal is aborted, also when the runtime ignores both. The agent sets
 * `defaultTimeoutMs` to `--runtime-request-timeout`; it does not apply to pulls, exec, attach, port-forward and
 * graceful stops.
 */
export function withDeadlines(engine: ContainerEngine, options: DeadlineOptions = {}): ContainerEngine {
  const { clock = systemClock, defaultTimeoutMs } = options;
  return decorateEngine(engine, (call, given, run) => {
    const usesDefault = given.timeoutMs === undefined && defaultTimeoutMs !== undefined && !unbounded.has(call);
    return boundedCall(clock, call, usesDefault ? { ...given, timeoutMs: defaultTimeoutMs } : given, run);
  });
}

/** Options of {@link withMetrics}. */
export interface RuntimeMetricsOptions {
  readonly metrics: Metrics;
  readonly clock?: Clock;
}

/** Measures the duration of every call and counts failures by their code. */
export function withMetrics(engine: ContainerEngine, options: RuntimeMetricsOptions): ContainerEngine {
  const { metrics, clock = systemClock } = options;
  const runtime = engine.runtime.name;
  const duration = metrics.histogram({
    name: 'keelson_runtime_call_duration_seconds',
    help: 'Duration of calls to the container runtime, including failed calls',
    labels: ['runtime', 'call'],
    buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60],
  });
  const failures = metrics.counter({
    name: 'keelson_runtime_call_failures_total',
    help: 'Calls to the container runtime that failed, by error code',
    labels: ['runtime', 'call', 'code'],
  });
  return decorateEngine(engine, async (call, given, run) => {
    const begin = clock.monotonic();
    try {
      return await run(given);
    } catch (error) {
      failures.add(1, { runtime, call, code: toRuntimeError(error).code });
      throw error;
    } finally {
      duration.observe((clock.monotonic() - begin) / 1000, { runtime, call });
    }
  });
}
