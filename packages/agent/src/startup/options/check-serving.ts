import { between, type Check, noNegativePeriod, oneOf } from './option-checks.ts';
import type { AgentOptions } from './option-table.ts';

const highestPort = 65_535;

function* certificatePair({ values }: Parameters<Check>[0]): Iterable<string> {
  const { 'tls-cert-file': certificate, 'tls-private-key-file': key } = values;
  if ((certificate === '') !== (key === '')) yield '--tls-cert-file and --tls-private-key-file must be given together';
}

function* portsDiffer({ values }: Parameters<Check>[0]): Iterable<string> {
  const ports = (['port', 'read-only-port', 'healthz-port', 'stats-port'] as const).filter(
    (name) => values[name] !== 0 && (name !== 'port' || values['enable-server']),
  );
  for (const [index, name] of ports.entries()) {
    const other = ports.slice(index + 1).find((later) => values[later] === values[name]);
    if (other !== undefined) yield `--${name} and --${other} must differ, both are ${values[name]}`;
  }
}

/** Warnings about options whose handlers are not served. */
export function servingWarnings(values: AgentOptions): string[] {
  if (!values['contention-profiling']) return [];
  const closed = (['enable-server', 'enable-debugging-handlers'] as const).find((name) => !values[name]);
  return closed === undefined ? [] : [`--contention-profiling has no effect without --${closed}`];
}

function* bootstrapFiles({ values }: Parameters<Check>[0]): Iterable<string> {
  const { 'bootstrap-clusterconfig': file, 'experimental-bootstrap-clusterconfig': old, clusterconfig } = values;
  if (file !== '' && old !== '' && file !== old) {
    yield '--bootstrap-clusterconfig and --experimental-bootstrap-clusterconfig name different files; omit the second';
  }
  if ((file !== '' || old !== '') && clusterconfig === '') {
    yield '--bootstrap-clusterconfig needs --clusterconfig, the file that is written';
  }
}

/** Checks of serving and of access. With 0 as the main port the system selects a free port, which tests use. */
export const servingChecks: readonly Check[] = [
  between(0, highestPort, 'port', 'read-only-port', 'healthz-port', 'stats-port'),
  certificatePair,
  portsDiffer,
  oneOf('authorization-mode', 'AlwaysAllow', 'Webhook'),
  bootstrapFiles,
  noNegativePeriod(
    'authentication-token-webhook-cache-ttl',
    'authorization-webhook-cache-authorized-ttl',
    'authorization-webhook-cache-unauthorized-ttl',
    'streaming-connection-idle-timeout',
  ),
];
