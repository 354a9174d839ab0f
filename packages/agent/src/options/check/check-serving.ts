import { between, type Check, noNegativePeriod, oneOf } from './check.ts';

const highestPort = 65_535;

function* certificatePair({ values }: Parameters<Check>[0]): Iterable<string> {
  const { 'tls-cert-file': certificate, 'tls-private-key-file': key } = values;
  if ((certificate === '') !== (key === '')) yield '--tls-cert-file and --tls-private-key-file go together';
}

function* portsDiffer({ values }: Parameters<Check>[0]): Iterable<string> {
  const ports = (['port', 'read-only-port', 'healthz-port'] as const).filter(
    (name) => values[name] !== 0 && (name !== 'port' || values['enable-server']),
  );
  for (const [index, name] of ports.entries()) {
    const other = ports.slice(index + 1).find((later) => values[later] === values[name]);
    if (other !== undefined) yield `--${name} and --${other} must differ, both are ${values[name]}`;
  }
}

function* webhookNeedsApi({ values, given }: Parameters<Check>[0]): Iterable<string> {
  const hasApi = given.has('clusterconfig') || values['bootstrap-clusterconfig'] !== '';
  if (values['authentication-token-webhook'] && !hasApi) yield '--authentication-token-webhook needs --clusterconfig';
  if (values['authorization-mode'] === 'Webhook' && !hasApi) yield '--authorization-mode=Webhook needs --clusterconfig';
}

/** Serving, and who may ask. Port 0 of the main port lets the system choose, which tests use. */
export const servingChecks: readonly Check[] = [
  between(0, highestPort, 'port', 'read-only-port', 'healthz-port', 'stats-port'),
  certificatePair,
  portsDiffer,
  oneOf('authorization-mode', 'AlwaysAllow', 'Webhook'),
  webhookNeedsApi,
  noNegativePeriod(
    'authentication-token-webhook-cache-ttl',
    'authorization-webhook-cache-authorized-ttl',
    'authorization-webhook-cache-unauthorized-ttl',
    'streaming-connection-idle-timeout',
  ),
];
