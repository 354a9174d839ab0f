import { parseQuantity, QuantityError, quantityMilliValue } from '@keelson/core';
import { didYouMeanOneOf } from '@keelson/core/internal';
import { between, type Check, eachOf, oneOf, positivePeriod } from './option-checks.ts';

const reservable = ['cpu', 'memory', 'ephemeral-storage'];

function reserved(name: 'cluster-reserved' | 'system-reserved'): Check {
  return function* ({ values }) {
    for (const [resource, amount] of values[name]) {
      if (!reservable.includes(resource)) {
        yield `--${name}: cannot reserve ${JSON.stringify(resource)} resource${didYouMeanOneOf(resource, reservable)}`;
        continue;
      }
      try {
        if (parseQuantity(amount).unscaled < 0n) yield `--${name}: ${resource} must not be negative, not ${amount}`;
      } catch (error) {
        if (!(error instanceof QuantityError)) throw error;
        yield `--${name}: ${resource} must be a quantity such as 500m or 1Gi, not ${JSON.stringify(amount)}`;
      }
    }
  };
}

/** Namespaced sysctls, which a pod can set without an effect on other pods. */
const namespaced = /^(kernel\.shm|kernel\.msg|kernel\.sem(\.|\*|$)|fs\.mqueue\.|net\.)/;

function* sysctls({ values }: Parameters<Check>[0]): Iterable<string> {
  for (const name of values['experimental-allowed-unsafe-sysctls']) {
    if (!/^[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*\.?\*?$/.test(name)) {
      const problem = 'is neither a sysctl nor a pattern that ends in *';
      yield `--experimental-allowed-unsafe-sysctls: ${JSON.stringify(name)} ${problem}`;
    } else if (!namespaced.test(name)) {
      yield `--experimental-allowed-unsafe-sysctls: ${name} is not known to be namespaced`;
    }
  }
}

function* manifestUrl({ values }: Parameters<Check>[0]): Iterable<string> {
  const url = values['manifest-url'];
  if (url === '') {
    if (values['manifest-url-header'].length > 0) yield '--manifest-url-header needs --manifest-url';
    return;
  }
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    yield '--manifest-url must be an http or https URL';
}

function* runOnce({ values, given }: Parameters<Check>[0]): Iterable<string> {
  if (!values.runonce) return;
  if (given.has('enable-server') && values['enable-server']) yield '--runonce and --enable-server exclude each other';
  if (values['pod-manifest-path'] === '' && values['manifest-url'] === '')
    yield '--runonce needs --pod-manifest-path or --manifest-url';
}

function* cpuManager({ values, gates }: Parameters<Check>[0]): Iterable<string> {
  if (values['cpu-manager-policy'] !== 'static') return;
  if (gates['CPUManager'] !== true) yield '--cpu-manager-policy=static needs --feature-gates=CPUManager=true';
  const reserved = [values['cluster-reserved'], values['system-reserved']].map((amounts) => amounts.get('cpu') ?? '0');
  if (reserved.every((amount) => quantityMilliValue(amount) <= 0n))
    yield '--cpu-manager-policy=static needs CPU above 0 in --cluster-reserved or --system-reserved';
}

/** Checks of pod sources, of the resources of pods, and of the limits of the agent. */
export const podChecks: readonly Check[] = [
  between(0, Number.POSITIVE_INFINITY, 'max-pods', 'pods-per-core', 'max-open-files'),
  between(-1000, 1000, 'oom-score-adj'),
  positivePeriod('file-check-frequency', 'http-check-frequency', 'sync-frequency', 'cpu-manager-reconcile-period'),
  eachOf(['file', 'http', 'api', '*'], 'host-network-sources', 'host-pid-sources', 'host-ipc-sources'),
  oneOf('cpu-manager-policy', 'none', 'static'),
  manifestUrl,
  runOnce,
  reserved('cluster-reserved'),
  reserved('system-reserved'),
  cpuManager,
  sysctls,
];
