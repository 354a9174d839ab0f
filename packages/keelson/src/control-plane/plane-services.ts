import { type ApiClient, isStatusError, type KindDefinition, type KubeObject, StatusReason } from '@keelson/core';
import { type Logger, type Service, silentLogger } from '@keelson/core/runtime';
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

/** Creates the namespaces and priority classes that clients rely on. */
export function systemObjects(client: ApiClient): Service {
  const ensure = async <T extends KubeObject>(kind: KindDefinition<T>, object: T) => {
    await client
      .resource(kind)
      .create(object)
      .catch((error: unknown) => {
        if (!isStatusError(error, StatusReason.AlreadyExists)) throw error;
      });
  };
  return {
    name: 'system-objects',
    start: async () => {
      await Promise.all([
        ...names.map((name) => ensure(Namespace, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })),
        ...systemPriorityClasses.map((object) => ensure(PriorityClass, object)),
      ]);
    },
    stop: async () => {},
  };
}
