import { type ApiClient, isStatusError, type KindDefinition, type KubeObject, StatusReason } from '@keelson/core';
import { type Clock, type Logger, pause, type Service, silentLogger } from '@keelson/core/runtime';
import { Namespace, PriorityClass, systemPriorityClasses } from '@keelson/kinds';

/** Longest interval of a timer. */
const longestIntervalMs = 2 ** 31 - 1;

/**
 * Keeps the process alive while the plane runs. The timers of the plane do not, so a program that only waits for a
 * watch or a controller would exit.
 */
export function processAnchor(): Service {
  let timer: NodeJS.Timeout | undefined;
  return {
    name: 'process-anchor',
    start: async () => {
      // Not injected: keeps the process alive, which timers of a `Clock` do not.
      timer = setInterval(() => {}, longestIntervalMs);
    },
    stop: async () => clearInterval(timer),
  };
}

/** Reports what delays or disturbs the start and the end of a plane whose program gives no logger. */
export const processWarnings: Logger = {
  ...silentLogger,
  warn: (message, { component, reason, err } = {}) =>
    process.emitWarning(
      `${String(component)}: ${message}${reason === undefined && err === undefined ? '' : `: ${String(reason ?? err)}`}`,
      'KeelsonWarning',
    ),
};

const names = ['default', 'kube-system', 'kube-public', 'kube-node-lease'];

/** Period after which missing objects are created again, as in Kubernetes. */
export const keepPeriodMs = 60_000;

/** Creates an object unless it exists, and replaces one that is outdated. */
export async function ensureObject<T extends KubeObject>(
  client: ApiClient,
  kind: KindDefinition<T>,
  object: T,
  isOutdated: (existing: T) => boolean = () => false,
): Promise<void> {
  const objects = client.resource(kind);
  try {
    const existing = await objects.get(object.metadata?.name ?? '').catch((error: unknown) => {
      if (!isStatusError(error, StatusReason.NotFound)) throw error;
    });
    if (existing === undefined) await objects.create(object);
    else if (isOutdated(existing)) await objects.update({ ...object, metadata: existing.metadata });
  } catch (error) {
    // Another server was faster.
    const { AlreadyExists, Conflict } = StatusReason;
    if (![AlreadyExists, Conflict].some((reason) => isStatusError(error, reason))) throw error;
  }
}

/**
 * Creates the namespaces and priority classes that clients rely on; the namespaces also when they are deleted later.
 */
export function systemObjects(
  client: ApiClient,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): Service {
  const stopped = new AbortController();
  let keeping: Promise<void> | undefined;
  const namespaces = () =>
    Promise.all(
      names.map((name) => ensureObject(client, Namespace, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })),
    );
  const keep = async (signal: AbortSignal) => {
    for (;;) {
      await pause(clock, keepPeriodMs, signal);
      if (signal.aborted) return;
      await namespaces().catch((err: unknown) =>
        logger.warn('a namespace of the system could not be created, will retry', { component: 'system-objects', err }),
      );
    }
  };
  return {
    name: 'system-objects',
    start: async () => {
      await Promise.all([
        namespaces(),
        ...systemPriorityClasses.map((object) => ensureObject(client, PriorityClass, object)),
      ]);
      keeping = keep(stopped.signal);
    },
    stop: async () => {
      stopped.abort();
      await keeping;
    },
  };
}
