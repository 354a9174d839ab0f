import type { Clock, Logger } from '@keelson/core/runtime';
import type { NetworkConfig } from '../../base/config/agent-config.ts';
import type { EventRecorder } from '../../base/events/event-recorder.ts';
import { Repeater } from '../../base/repeater.ts';
import type { CommandResult, HostActions } from './host-actions.ts';

/** Tables of the packet filter in which the agent has chains. */
export type Table = 'nat' | 'filter';

export interface Chain {
  readonly table: Table;
  readonly name: string;
}

/** A rule as iptables arguments, in the order in which iptables prints them. */
export interface Rule extends Chain {
  readonly words: readonly string[];
  /** The rule is inserted before all other rules of its chain. */
  readonly first: boolean;
}

/** Chain names that service proxies rely on. */
const markDrop = 'KUBE-MARK-DROP';
const markMasquerade = 'KUBE-MARK-MASQ';
const postrouting = 'KUBE-POSTROUTING';
const firewall = 'KUBE-FIREWALL';

export const utilityChains: readonly Chain[] = [
  { table: 'nat', name: markDrop },
  { table: 'nat', name: markMasquerade },
  { table: 'nat', name: postrouting },
  { table: 'filter', name: firewall },
];

/** A bit of the packet mark as value/mask; other bits are not touched. */
export function markOf(bit: number): string {
  const value = `0x${(2 ** bit).toString(16)}`;
  return `${value}/${value}`;
}

const comment = (text: string): string[] => ['-m', 'comment', '--comment', text];

/**
 * The rules for these mark bits. Another program jumps to a chain that marks a packet; marked packets are dropped or
 * masqueraded at the end of their path.
 */
export function utilityRules(dropBit: number, masqueradeBit: number): readonly Rule[] {
  const drop = markOf(dropBit);
  const masquerade = markOf(masqueradeBit);
  const toFirewall = { table: 'filter', words: ['-j', firewall], first: true } as const;
  return [
    { table: 'nat', name: markDrop, words: ['-j', 'MARK', '--set-xmark', drop], first: false },
    {
      table: 'filter',
      name: firewall,
      words: [
        ...comment('kubernetes firewall for dropping marked packets'),
        '-m',
        'mark',
        '--mark',
        drop,
        '-j',
        'DROP',
      ],
      first: false,
    },
    { ...toFirewall, name: 'OUTPUT' },
    { ...toFirewall, name: 'INPUT' },
    { table: 'nat', name: markMasquerade, words: ['-j', 'MARK', '--set-xmark', masquerade], first: false },
    {
      table: 'nat',
      name: postrouting,
      words: [
        ...comment('kubernetes service traffic requiring SNAT'),
        '-m',
        'mark',
        '--mark',
        masquerade,
        '-j',
        'MASQUERADE',
      ],
      first: false,
    },
    {
      table: 'nat',
      name: 'POSTROUTING',
      words: [...comment('kubernetes postrouting rules'), '-j', postrouting],
      first: true,
    },
  ];
}

/** An iptables command failed. */
export class PacketFilterError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'PacketFilterError';
  }
}

const timeoutMs = 20_000;
const anyMark = /0x[0-9a-f]+\/0x[0-9a-f]+/;

/** Chains and rules of the machine, managed with the iptables command. All methods are idempotent. */
export class PacketFilter {
  readonly #host: HostActions;
  readonly #logger: Logger;

  constructor(host: HostActions, logger: Logger) {
    this.#host = host;
    this.#logger = logger;
  }

  /** Creates the chain unless it exists. */
  async ensureChain({ table, name }: Chain): Promise<void> {
    if ((await this.#run(table, '-S', name)).code === 0) return;
    const made = await this.#run(table, '-N', name);
    // Another program may have created the chain meanwhile.
    if (made.code === 0) this.#changed(table, '-N', name);
    else if ((await this.#run(table, '-S', name)).code !== 0) throw failure(`chain ${name}`, made);
  }

  /** Adds the rule unless it exists. */
  async ensureRule({ table, name, words, first }: Rule): Promise<void> {
    if ((await this.#run(table, '-C', name, ...words)).code === 0) return;
    const change = [first ? '-I' : '-A', name, ...words];
    const added = await this.#run(table, ...change);
    if (added.code !== 0) throw failure(`rule of ${name}`, added);
    this.#changed(table, ...change);
  }

  /** Removes rules that differ from this one only in the mark: those of an agent with another mark bit. */
  async removeOtherMarks({ table, name, words }: Rule): Promise<void> {
    const mark = words.find((word) => anyMark.test(word));
    if (mark === undefined) return;
    const lines = (await this.#run(table, '-S', name)).stdout.split('\n').filter((line) => line.startsWith('-A '));
    // The form in which this version of iptables prints the rule.
    const ours = lines.find((line) => line.includes(` ${mark}`));
    if (ours === undefined) return;
    for (const line of lines.filter((other) => other !== ours && other.replace(anyMark, mark) === ours)) {
      const [, , ...rest] = wordsOf(line);
      const removed = await this.#run(table, '-D', name, ...rest);
      if (removed.code !== 0) throw failure(`old rule of ${name}`, removed);
      this.#changed(table, '-D', name, ...rest);
    }
  }

  /** Logs a change as iptables arguments: added (-N, -A, -I) or removed (-D). */
  #changed(table: Table, ...words: readonly string[]): void {
    this.#logger.info('the packet filter was changed', { component: 'utility-chains', table, change: words.join(' ') });
  }

  async #run(table: Table, ...words: readonly string[]): Promise<CommandResult> {
    try {
      // `-w` waits for the lock of another iptables command.
      return await this.#host.run('iptables', ['-w', '-t', table, ...words], timeoutMs);
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') {
        throw new PacketFilterError('iptables is not installed on this machine', { cause: error });
      }
      throw error;
    }
  }
}

function failure(what: string, { code, stderr }: CommandResult): PacketFilterError {
  return new PacketFilterError(`iptables rejected the ${what} (exit ${code}): ${stderr.trim()}`);
}

/** The arguments of a printed rule; texts with spaces are quoted. */
function wordsOf(line: string): string[] {
  return [...line.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
}

export interface UtilityChainsOptions {
  readonly host: HostActions;
  readonly config: Pick<NetworkConfig, 'iptablesDropBit' | 'iptablesMasqueradeBit'>;
  readonly nodeName: string;
  readonly periodMs: number;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Reconciles the chains of the packet filter that service proxies rely on. When that is not possible (no iptables,
 * missing privileges), the agent runs without them and reports it once. The chains remain when the agent ends, because
 * the proxies continue to use them.
 */
export class UtilityChains {
  readonly #options: UtilityChainsOptions;
  readonly #filter: PacketFilter;
  readonly #loop: Repeater;
  #othersRemoved = false;
  #reported = '';

  constructor(options: UtilityChainsOptions) {
    this.#options = options;
    this.#filter = new PacketFilter(options.host, options.logger);
    const { clock, periodMs, logger } = options;
    const run = (signal: AbortSignal) => this.#round(signal);
    this.#loop = new Repeater({ clock, periodMs, logger, what: 'reconciling the packet filter', run });
  }

  start(): void {
    this.#loop.start();
  }

  /** Resolves when no command runs any more. */
  stop(): Promise<void> {
    return this.#loop.stop();
  }

  async #round(signal: AbortSignal): Promise<void> {
    try {
      await this.#ensure(signal);
      this.#reported = '';
    } catch (error) {
      this.#report(error instanceof Error ? error.message : String(error));
    }
  }

  async #ensure(signal: AbortSignal): Promise<void> {
    const { iptablesDropBit, iptablesMasqueradeBit } = this.#options.config;
    const rules = utilityRules(iptablesDropBit, iptablesMasqueradeBit);
    for (const chain of utilityChains) if (!signal.aborted) await this.#filter.ensureChain(chain);
    for (const rule of rules) if (!signal.aborted) await this.#filter.ensureRule(rule);
    if (this.#othersRemoved || signal.aborted) return;
    // Only in the first round: a proxy that is configured with another bit would add its rule again after each removal.
    for (const rule of rules) await this.#filter.removeOtherMarks(rule);
    this.#othersRemoved = true;
  }

  #report(problem: string): void {
    const { logger, events, nodeName } = this.#options;
    if (problem === this.#reported) return;
    this.#reported = problem;
    logger.warn('utility chains of iptables could not be reconciled', { component: 'utility-chains', problem });
    const subject = { apiVersion: 'v1', kind: 'Node', name: nodeName, uid: nodeName };
    events.record(
      subject,
      'Warning',
      'UtilityChainsNotKept',
      `Utility chains of iptables could not be reconciled: ${problem}`,
    );
  }
}
