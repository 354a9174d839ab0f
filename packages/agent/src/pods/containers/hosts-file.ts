import type { Pod } from '@keelson/kinds';

const header = '# Written by the node agent.';

/** The host name of a pod: its `hostname` or name, truncated to the length that Linux permits. */
export function hostNameOf(pod: Pod): string {
  const name = pod.spec.hostnameOverride || pod.spec.hostname || pod.metadata?.name || '';
  return name.slice(0, 63).replace(/[-.]+$/, '');
}

/** The hosts file of a pod with its own network. */
export function hostsFile(pod: Pod, ips: readonly string[], clusterDomain: string): string {
  const host = hostNameOf(pod);
  const { subdomain } = pod.spec;
  const full = subdomain
    ? `${host}.${subdomain}.${pod.metadata?.namespace ?? ''}.svc${clusterDomain ? `.${clusterDomain}` : ''}`
    : '';
  const lines = [
    header,
    '127.0.0.1\tlocalhost',
    '::1\tlocalhost ip6-localhost ip6-loopback',
    'fe00::0\tip6-localnet',
    'fe00::0\tip6-mcastprefix',
    'fe00::1\tip6-allnodes',
    'fe00::2\tip6-allrouters',
    ...ips.map((ip) => `${ip}\t${full === '' ? host : `${full}\t${host}`}`),
    ...aliasLines(pod),
  ];
  return `${lines.join('\n')}\n`;
}

/** The hosts file of a pod on the host's network: that of the host, with the pod's aliases. */
export function hostNetworkHostsFile(pod: Pod, machine: string): string {
  return [header, machine.trimEnd(), ...aliasLines(pod), ''].join('\n');
}

function aliasLines(pod: Pod): string[] {
  const aliases = pod.spec.hostAliases ?? [];
  if (aliases.length === 0) return [];
  return [
    '',
    '# Entries added by HostAliases.',
    ...aliases.map(({ ip, hostnames }) => [ip, ...(hostnames ?? [])].join('\t')),
  ];
}
