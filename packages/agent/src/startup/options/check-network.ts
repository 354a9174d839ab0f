import { dns1123SubdomainErrors, isCIDR, isIP, labelKeyErrors, labelValueErrors } from '@keelson/core';
import { between, type Check, oneOf, positivePeriod } from './option-checks.ts';

function* bitsDiffer({ values }: Parameters<Check>[0]): Iterable<string> {
  if (values['iptables-drop-bit'] === values['iptables-masquerade-bit']) {
    yield '--iptables-drop-bit and --iptables-masquerade-bit must differ';
  }
}

function* dns({ values }: Parameters<Check>[0]): Iterable<string> {
  const wrong = values['cluster-dns'].find((server) => !isIP(server));
  if (wrong !== undefined) yield `--cluster-dns must be IP addresses, not ${JSON.stringify(wrong)}`;
  const domain = values['cluster-domain'].replace(/\.$/, '');
  const [problem] = domain === '' ? [] : dns1123SubdomainErrors(domain);
  if (problem !== undefined) yield `--cluster-domain: ${problem}`;
}

function* identity({ values }: Parameters<Check>[0]): Iterable<string> {
  const { 'node-ip': ip, 'hostname-override': given } = values;
  if (ip !== '' && !isIP(ip)) yield `--node-ip must be an IP address, not ${JSON.stringify(ip)}`;
  const name = given.trim().toLowerCase();
  const [problem] = name === '' ? [] : dns1123SubdomainErrors(name);
  if (problem !== undefined) yield `--hostname-override: ${problem}`;
  for (const [key, value] of values['node-labels']) {
    const [wrong] = [...labelKeyErrors(key), ...labelValueErrors(value)];
    if (wrong !== undefined) yield `--node-labels: ${JSON.stringify(key)}: ${wrong}`;
  }
}

function* plugin({ values }: Parameters<Check>[0]): Iterable<string> {
  const { 'pod-cidr': range, 'network-plugin': chosen, 'cni-bin-dir': binaries, 'cni-conf-dir': networks } = values;
  if (range !== '' && !isCIDR(range))
    yield `--pod-cidr must be a range such as 10.1.2.0/24, not ${JSON.stringify(range)}`;
  if (chosen !== '' && binaries === '') yield `--network-plugin=${chosen} needs --cni-bin-dir`;
  if (chosen === 'cni' && networks === '') yield '--network-plugin=cni needs --cni-conf-dir';
}

function* gatesFor({ values, gates }: Parameters<Check>[0]): Iterable<string> {
  if (values['dynamic-config-dir'] !== '' && !gates['DynamicAgentConfig']) {
    yield '--dynamic-config-dir needs --feature-gates=DynamicAgentConfig=true';
  }
}

function* lock({ values }: Parameters<Check>[0]): Iterable<string> {
  if (values['exit-on-lock-contention'] && values['lock-file'] === '')
    yield '--exit-on-lock-contention needs --lock-file';
}

/** Checks of the network, the node's identity, the API client, and other options. */
export const networkChecks: readonly Check[] = [
  between(0, 31, 'iptables-drop-bit', 'iptables-masquerade-bit'),
  bitsDiffer,
  oneOf('hairpin-mode', 'promiscuous-bridge', 'hairpin-veth', 'none'),
  oneOf('network-plugin', '', 'cni', 'bridge', 'kubenet'),
  plugin,
  oneOf('cluster-api-content-type', 'application/vnd.kubernetes.protobuf', 'application/json'),
  between(
    0,
    Number.POSITIVE_INFINITY,
    'network-plugin-mtu',
    'cluster-api-qps',
    'cluster-api-burst',
    'event-qps',
    'event-burst',
  ),
  between(0, 1, 'chaos-chance'),
  positivePeriod('node-status-update-frequency'),
  dns,
  identity,
  gatesFor,
  lock,
];
