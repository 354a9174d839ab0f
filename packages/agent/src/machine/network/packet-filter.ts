import type { Logger } from '@keelson/core';
import type { CommandResult, HostActions } from './host-actions.ts';
import type { Chain, Rule, Table } from './utility-rules.ts';

/** The packet filter did not do what it was told. */
export class PacketFilterError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'PacketFilterError';
  }
}

const timeoutMs = 20_000;
const anyMark = /0x[0-9a-f]+\/0x[0-9a-f]+/;

/** Chains and rules of the machine, through the iptables command. All methods may be repeated. */
export class PacketFilter {
  readonly #host: HostActions;
  readonly #logger: Logger;

  constructor(host: HostActions, logger: Logger) {
    this.#host = host;
    this.#logger = logger;
  }

  /** Makes the chain unless it is there. */
  async ensureChain({ table, name }: Chain): Promise<void> {
    if ((await this.#run(table, '-S', name)).code === 0) return;
    const made = await this.#run(table, '-N', name);
    // Somebody else may have made it meanwhile.
    if (made.code === 0) this.#changed(table, '-N', name);
    else if ((await this.#run(table, '-S', name)).code !== 0) throw failure(`chain ${name}`, made);
  }

  /** Adds the rule unless it is there. */
  async ensureRule({ table, name, words, first }: Rule): Promise<void> {
    if ((await this.#run(table, '-C', name, ...words)).code === 0) return;
    const change = [first ? '-I' : '-A', name, ...words];
    const added = await this.#run(table, ...change);
    if (added.code !== 0) throw failure(`rule of ${name}`, added);
    this.#changed(table, ...change);
  }

  /** Removes rules that are this one but for the mark: those of an agent that was told another bit. */
  async removeOtherMarks({ table, name, words }: Rule): Promise<void> {
    const mark = words.find((word) => anyMark.test(word));
    if (mark === undefined) return;
    const lines = (await this.#run(table, '-S', name)).stdout.split('\n').filter((line) => line.startsWith('-A '));
    // As this iptables prints it, which is not the same in every version.
    const ours = lines.find((line) => line.includes(` ${mark}`));
    if (ours === undefined) return;
    for (const line of lines.filter((other) => other !== ours && other.replace(anyMark, mark) === ours)) {
      const [, , ...rest] = wordsOf(line);
      const removed = await this.#run(table, '-D', name, ...rest);
      if (removed.code !== 0) throw failure(`old rule of ${name}`, removed);
      this.#changed(table, '-D', name, ...rest);
    }
  }

  /** In the words of iptables, which name what was added (-N, -A, -I) or removed (-D). */
  #changed(table: Table, ...words: readonly string[]): void {
    this.#logger.info('the packet filter was changed', { component: 'utility-chains', table, change: words.join(' ') });
  }

  async #run(table: Table, ...words: readonly string[]): Promise<CommandResult> {
    try {
      // Waits while another program changes tables.
      return await this.#host.run('iptables', ['-w', '-t', table, ...words], timeoutMs);
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') {
        throw new PacketFilterError('there is no iptables on this machine', { cause: error });
      }
      throw error;
    }
  }
}

function failure(what: string, { code, stderr }: CommandResult): PacketFilterError {
  return new PacketFilterError(`iptables did not take the ${what} (exit ${code}): ${stderr.trim()}`);
}

/** Words of a printed rule; quotes stand around texts with spaces. */
function wordsOf(line: string): string[] {
  return [...line.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
}
