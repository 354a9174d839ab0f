import { isIPv4 } from 'node:net';
import { isNonStandard, parseCidr, standardAddress } from './parse-address.ts';

const future = 'will be considered invalid in a future Kubernetes release: use';
const canonical = 'should be in RFC 5952 canonical format';

/** Warnings about a valid address that other software may read differently. */
export function addressWarnings(address: string | undefined, path: string): string[] {
  if (!address || isIPv4(address)) return [];
  const standard = standardAddress(address);
  if (standard === undefined || standard === address) return [];
  if (isNonStandard(address)) {
    return [`${path}: non-standard IP address ${JSON.stringify(address)} ${future} ${JSON.stringify(standard)}`];
  }
  return [`${path}: IPv6 address ${JSON.stringify(address)} ${canonical} (${JSON.stringify(standard)})`];
}

/** Warnings about a valid address range that other software may read differently, or that has host bits. */
export function cidrWarnings(text: string, path: string): string[] {
  const cidr = parseCidr(text);
  if (!cidr || text === cidr.network) return [];
  const { address, bits, network, size } = cidr;
  const quoted = JSON.stringify(text);
  const warnings: string[] = [];
  if (network !== `${address}/${bits}`) {
    const single = `${address}/${size}`;
    const choice = `(should be ${JSON.stringify(network)} or ${JSON.stringify(single)}?)`;
    warnings.push(`${path}: CIDR value ${quoted} is ambiguous in this context ${choice}`);
  }
  const [written = '', length = ''] = text.split('/');
  if (isNonStandard(written) || /^0\d/.test(length)) {
    warnings.push(`${path}: non-standard CIDR value ${quoted} ${future} ${JSON.stringify(network)}`);
  }
  if (warnings.length > 0) return warnings;
  return [`${path}: IPv6 CIDR value ${quoted} ${canonical} (${JSON.stringify(network)})`];
}

interface Balancer {
  readonly ingress?: readonly { readonly ip?: string }[];
}

/** Warns about the addresses in the status of a service or ingress. */
export function warnOfBalancerAddresses(balancer: Balancer | undefined, warn: (text: string) => void): void {
  balancer?.ingress?.forEach(({ ip }, i) => {
    for (const text of addressWarnings(ip, `status.loadBalancer.ingress[${i}]`)) warn(text);
  });
}
