import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Logger } from '@keelson/core/runtime';
import { programPath } from '../cni/program-path.ts';

const run = promisify(execFile);
const timeoutMs = 20_000;

/**
 * A promiscuous bridge also passes frames between pods to the machine. With br_netfilter, a frame to a service is
 * already addressed to the pod, so the machine sends it a second time. The rules drop these copies: frames from the
 * machine whose source is in the pod CIDR, except those with the address of the bridge, which are originals. Without
 * br_netfilter there are no copies, and the rules would drop originals. Frames from the machine are identified by the
 * hardware address of the bridge, which is set explicitly, because it otherwise changes with the ports of the bridge.
 */
const script = `
set -e
bridge=$1 mac=$2 gateway=$3 range=$4 chain=KUBE-DEDUP-$1
ip link set dev "$bridge" address "$mac"
ebtables -t filter -L "$chain" >/dev/null 2>&1 || ebtables -t filter -N "$chain" -P RETURN
ebtables -t filter -F "$chain"
if [ "$(cat /proc/sys/net/bridge/bridge-nf-call-iptables 2>/dev/null)" = 1 ]; then
  ebtables -t filter -A "$chain" -p IPv4 -s "$mac" -o veth+ --ip-src "$gateway" -j ACCEPT
  ebtables -t filter -A "$chain" -p IPv4 -s "$mac" -o veth+ --ip-src "$range" -j DROP
fi
ebtables -t filter -L OUTPUT | grep -q -- "-j $chain *$" || ebtables -t filter -I OUTPUT -j "$chain"
`;

/** Addresses that identify frames from the machine on the bridge. */
export interface BridgeIdentity {
  /** Hardware address of the bridge. */
  readonly mac: string;
  /** Address of the bridge in the pod CIDR. */
  readonly gateway: string;
  readonly range: string;
}

export interface NoDuplicatesOptions {
  readonly bridge: string;
  /** Command line prefix of the program, as for plugins. */
  readonly launch?: readonly string[];
  readonly logger: Logger;
}

/** Maintains the rules that drop duplicate frames of a promiscuous bridge. */
export class NoDuplicates {
  readonly #options: NoDuplicatesOptions;
  #last = '';
  #running: Promise<void> = Promise.resolve();

  constructor(options: NoDuplicatesOptions) {
    this.#options = options;
  }

  /** Adds the rules, once for each identity. A failure, such as missing ebtables, is logged and does not fail pods. */
  ensure({ mac, gateway, range }: BridgeIdentity): Promise<void> {
    const words = [mac, gateway, range];
    const key = words.join(' ');
    if (key === this.#last) return this.#running;
    this.#last = key;
    this.#running = this.#running.then(() => this.#set(words));
    return this.#running;
  }

  async #set(identity: readonly string[]): Promise<void> {
    const { bridge, launch = [], logger } = this.#options;
    const [program = 'sh', ...words] = [...launch, 'sh', '-c', script, 'sh', bridge, ...identity];
    try {
      await run(program, words, { timeout: timeoutMs, env: { PATH: programPath } });
    } catch (err) {
      const message = 'failed to add rules for the promiscuous bridge: datagrams between pods may arrive twice';
      logger.warn(message, { bridge, err });
    }
  }
}
