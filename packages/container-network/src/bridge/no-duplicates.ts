import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Logger } from '@keelson/core';
import { programPath } from '../cni/program-path.ts';

const run = promisify(execFile);
const timeoutMs = 20_000;

/**
 * A promiscuous bridge hands frames between pods up to the machine too. Where packet filters see bridged frames
 * (br_netfilter), one that goes to a pod by way of a service is addressed to that pod already, and the machine sends it
 * a second time. What the machine itself sends to pods has the bridge's address as its source; all else that it sends
 * with a source in the range of pods is such a copy. Without br_netfilter there are none, and the same frames are
 * originals. The bridge's hardware address, by which its frames are known, is fixed: else it changes with its ports.
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

/** How the machine's own frames on the bridge are known. */
export interface BridgeIdentity {
  /** Hardware address of the bridge. */
  readonly mac: string;
  /** Its address in the range of pods. */
  readonly gateway: string;
  readonly range: string;
}

export interface NoDuplicatesOptions {
  readonly bridge: string;
  /** Words before the program, as for plugins. */
  readonly launch?: readonly string[];
  readonly logger: Logger;
}

/** Keeps copies that a promiscuous bridge makes from pods. */
export class NoDuplicates {
  readonly #options: NoDuplicatesOptions;
  #last = '';
  #running: Promise<void> = Promise.resolve();

  constructor(options: NoDuplicatesOptions) {
    this.#options = options;
  }

  /** Once for each identity. Without ebtables there may be copies, which is said and no reason to refuse pods. */
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
      const message = 'datagrams between pods may arrive twice: rules for the promiscuous bridge are not in place';
      logger.warn(message, { bridge, err });
    }
  }
}
