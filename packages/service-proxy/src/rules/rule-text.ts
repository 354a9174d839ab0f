import { createHash } from 'node:crypto';
import { isIPv6 } from 'node:net';
import type { ServedPort } from '../routes/served-ports.ts';
import { textOf } from '../routes/target-choice.ts';

/** Begins the names of all chains of this program; names have at most 28 characters. */
export const chainPrefix = 'KEELSON-';
const services = `${chainPrefix}SERVICES`;
const nodePorts = `${chainPrefix}NODEPORTS`;
const mark = `${chainPrefix}MARK`;
const masquerade = `${chainPrefix}MASQ`;
const reject = `${chainPrefix}REJECT`;
/** The bit of the packet mark that kube-proxy and kubelet use for the same purpose. */
const markBit = '0x4000/0x4000';

/** Rules that jump from the chains of the kernel to the chains of this program; they are added once. */
export const jumps: readonly { readonly table: 'nat' | 'filter'; readonly words: readonly string[] }[] = [
  { table: 'nat', words: ['PREROUTING', '-j', services] },
  { table: 'nat', words: ['OUTPUT', '-j', services] },
  { table: 'nat', words: ['POSTROUTING', '-j', masquerade] },
  { table: 'filter', words: ['FORWARD', '-j', reject] },
  { table: 'filter', words: ['OUTPUT', '-j', reject] },
];

export interface RuleText {
  /** Input of `iptables-restore --noflush`: the listed chains are replaced, all other rules remain. */
  readonly text: string;
  /** Chains of the table `nat` that the text contains. */
  readonly chains: ReadonlySet<string>;
}

/**
 * The rules for the IPv4 addresses of all services. Each address has a chain that chooses an endpoint at random, and
 * each endpoint a chain that rewrites the destination. Packets to node ports, and of a pod to itself, get the address
 * of this machine as source, so that their answers come back through it.
 *
 * @param stale chains of earlier texts, which are removed
 */
export function ruleText(ports: readonly ServedPort[], stale: Iterable<string>): RuleText {
  const rules: string[] = [];
  const rejected: string[] = [];
  const chains = new Set([services, nodePorts, mark, masquerade]);
  for (const port of ports) {
    if (port.protocol === 'health' || isIPv6(port.address)) continue;
    const protocol = port.protocol.toLowerCase();
    const name = `${port.service.namespace}/${port.service.name}`;
    const place = [
      '-p',
      protocol,
      '-m',
      'comment',
      '--comment',
      `"${name}"`,
      '-m',
      protocol,
      '--dport',
      `${port.port}`,
    ];
    const match = (port.isNodePort ? place : ['-d', `${port.address}/32`, ...place]).join(' ');
    const targets = port.targets.filter(({ address }) => !isIPv6(address));
    if (targets.length === 0) {
      // A rule for a service without endpoints rejects connections immediately; otherwise clients would wait for a
      // timeout.
      if (!port.isNodePort) rejected.push(`-A ${reject} ${match} -j REJECT`);
      continue;
    }
    const chain = chainOf('SVC', `${protocol} ${port.address} ${port.port}`);
    chains.add(chain);
    const from = port.isNodePort ? nodePorts : services;
    if (port.isExternal && !port.onlyLocal) rules.push(`-A ${from} ${match} -j ${mark}`);
    rules.push(`-A ${from} ${match} -j ${chain}`);
    const endpoints = targets.map((target) => ({ target, chain: chainOf('SEP', `${chain} ${textOf(target)}`) }));
    if (port.affinityMs !== undefined)
      for (const endpoint of endpoints)
        rules.push(
          `-A ${chain} -m recent --name ${endpoint.chain} --rcheck --seconds ${port.affinityMs / 1000} --reap -j ${endpoint.chain}`,
        );
    for (const [i, endpoint] of endpoints.entries()) {
      const left = endpoints.length - i;
      const chance = left === 1 ? '' : ` -m statistic --mode random --probability ${(1 / left).toFixed(10)}`;
      chains.add(endpoint.chain);
      rules.push(
        `-A ${chain}${chance} -j ${endpoint.chain}`,
        `-A ${endpoint.chain} -s ${endpoint.target.address}/32 -j ${mark}`,
        `-A ${endpoint.chain} -p ${protocol}${port.affinityMs === undefined ? '' : ` -m recent --name ${endpoint.chain} --set`} -m ${protocol} -j DNAT --to-destination ${textOf(endpoint.target)}`,
      );
    }
  }
  const removed = [...stale].filter((chain) => !chains.has(chain));
  const lines = [
    '*filter',
    `:${reject} - [0:0]`,
    ...rejected,
    'COMMIT',
    '*nat',
    ...[...chains, ...removed].map((chain) => `:${chain} - [0:0]`),
    `-A ${mark} -j MARK --set-xmark ${markBit}`,
    `-A ${masquerade} -m mark --mark ${markBit} -j MASQUERADE`,
    ...rules,
    `-A ${services} -m addrtype --dst-type LOCAL -j ${nodePorts}`,
    ...removed.map((chain) => `-X ${chain}`),
    'COMMIT',
  ];
  return { text: `${lines.join('\n')}\n`, chains };
}

function chainOf(kind: 'SVC' | 'SEP', text: string): string {
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 16).toUpperCase();
  return `${chainPrefix}${kind}-${hash}`;
}
