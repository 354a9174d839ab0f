import { type RuntimeChoice, UsageError } from '@keelson/agent';

/** Runtimes that an agent may find by itself. */
export const foundRuntimes = ['engine', 'oci', 'process'] as const;
export type FoundRuntime = (typeof foundRuntimes)[number];

/** The choice that names one of them. */
export function choiceOf(name: FoundRuntime, engineEndpoint: string): Exclude<RuntimeChoice, { kind: 'default' }> {
  switch (name) {
    case 'engine':
      return { kind: 'engine', endpoint: engineEndpoint };
    case 'oci':
      return { kind: 'oci', path: undefined, supervisorEndpoint: undefined };
    case 'process':
      return { kind: 'process' };
  }
}

/**
 * The choice of the options, made narrower by the variable `KEELSON_AGENT_RUNTIME`: the options of the specification
 * have no word for one of the bundled runtimes.
 *
 * @throws UsageError for another word, and when options and variable both choose
 */
export function runtimeGiven(choice: RuntimeChoice, word: string | undefined): RuntimeChoice {
  if (word === undefined || word === '') return choice;
  const name = foundRuntimes.find((known) => known === word);
  if (name === undefined) {
    throw new UsageError(
      `KEELSON_AGENT_RUNTIME must be one of ${foundRuntimes.join(', ')}, not ${JSON.stringify(word)}`,
    );
  }
  if (choice.kind !== 'default') {
    throw new UsageError(`KEELSON_AGENT_RUNTIME=${name} and the options both choose a runtime; leave one out`);
  }
  return choiceOf(name, choice.engineEndpoint);
}
