import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock, Logger, Service as RunningService } from '@keelson/core/runtime';
import { type ServedPort, servedPorts } from '../routes/served-ports.ts';
import type { ServiceTable } from '../routes/service-table.ts';
import { chainPrefix, jumps, ruleText } from './rule-text.ts';

/** Runs programs of the machine; the host actions of an agent implement it. */
export interface RuleHost {
  run(
    program: string,
    words: readonly string[],
    timeoutMs: number,
  ): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }>;
}

/** Options of {@link ServiceRules}. */
export interface ServiceRulesOptions {
  readonly table: ServiceTable;
  readonly host: RuleHost;
  /** Directory for the input of the programs. */
  readonly directory: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Names of the nodes of this machine, for the traffic policy `Local`. */
  readonly localNodes: () => ReadonlySet<string>;
}

const timeoutMs = 20_000;
/** Rules that another program removed are restored in this interval. */
const periodMs = 30_000;
const retryMs = 5_000;

/**
 * Serves services by rules of the packet filter, for pods with a network of their own. It needs root, changes chains
 * whose names begin with `KEELSON-` only, and removes them when it stops.
 */
export class ServiceRules implements RunningService {
  readonly name = 'service-rules';
  readonly #options: ServiceRulesOptions;
  #chains: ReadonlySet<string> | undefined;
  #unsubscribe: () => void = () => {};
  #cancel: () => void = () => {};
  #running: Promise<void> = Promise.resolve();
  #busy = false;
  #again = false;
  #stopped = false;

  constructor(options: ServiceRulesOptions) {
    this.#options = options;
  }

  /** Resolves after the first attempt to write the rules. */
  async start(): Promise<void> {
    this.#unsubscribe = this.#options.table.onChange(() => this.#sync());
    this.#sync();
    await this.#running;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#unsubscribe();
    this.#cancel();
    await this.#running;
    await this.#remove().catch((err: unknown) => this.#options.logger.warn('rules were not removed', { err }));
  }

  #sync(): void {
    this.#again = true;
    if (this.#busy || this.#stopped) return;
    this.#busy = true;
    this.#cancel();
    this.#running = this.#passes().finally(() => {
      this.#busy = false;
    });
  }

  async #passes(): Promise<void> {
    const { clock, logger } = this.#options;
    let next = periodMs;
    while (this.#again && !this.#stopped) {
      this.#again = false;
      try {
        await this.#write();
      } catch (err) {
        logger.warn('rules of services cannot be written', { err });
        next = retryMs;
      }
    }
    if (!this.#stopped) this.#cancel = clock.after(next, () => this.#sync());
  }

  async #write(): Promise<void> {
    const { table, localNodes, directory } = this.#options;
    const nodes = localNodes();
    const ports: ServedPort[] = [];
    for (const service of table.services()) ports.push(...servedPorts(table, service, nodes, ['0.0.0.0']));
    const known = this.#chains ?? (await this.#existing());
    const { text, chains } = ruleText(ports, known);
    const file = join(directory, 'service-rules');
    await writeFile(file, text, { mode: 0o600 });
    await this.#run('iptables-restore', ['--wait', '--noflush', file]);
    await rm(file, { force: true });
    this.#chains = chains;
    for (const { table: name, words } of jumps) {
      const { code } = await this.#try('iptables', ['--wait', '-t', name, '-C', ...words]);
      if (code !== 0) await this.#run('iptables', ['--wait', '-t', name, '-I', ...words]);
    }
  }

  /** Chains that an earlier process left behind. */
  async #existing(): Promise<Set<string>> {
    const { stdout } = await this.#try('iptables-save', ['-t', 'nat']);
    const names = [...stdout.matchAll(/^:(\S+)/gm)].map(([, name = '']) => name);
    return new Set(names.filter((name) => /^KEELSON-(SVC|SEP)-/.test(name)));
  }

  async #remove(): Promise<void> {
    for (const { table, words } of jumps) await this.#try('iptables', ['--wait', '-t', table, '-D', ...words]);
    for (const table of ['nat', 'filter'] as const) {
      const { stdout } = await this.#try('iptables-save', ['-t', table]);
      const own = [...stdout.matchAll(/^:(\S+)/gm)].flatMap(([, name = '']) =>
        name.startsWith(chainPrefix) ? name : [],
      );
      for (const chain of own) await this.#try('iptables', ['--wait', '-t', table, '-F', chain]);
      for (const chain of own) await this.#try('iptables', ['--wait', '-t', table, '-X', chain]);
    }
  }

  #try(program: string, words: readonly string[]) {
    return this.#options.host.run(program, words, timeoutMs);
  }

  async #run(program: string, words: readonly string[]): Promise<void> {
    const { code, stderr } = await this.#try(program, words);
    if (code !== 0) throw new Error(`${program} ${words.join(' ')} failed with ${code}: ${stderr.trim()}`);
  }
}
