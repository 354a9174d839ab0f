import { isRecord } from '../../base/is-record.ts';
import { ProgramError, type RunProgram } from '../../base/run-program.ts';
import { VolumeProblem } from './volume-problem.ts';

/** What a driver of a third party answers, as JSON on its standard output. */
export interface DriverAnswer {
  readonly status: 'Success' | 'Failure' | 'Not supported';
  readonly message?: string;
  readonly device?: string;
  readonly volumeName?: string;
  readonly attached?: boolean;
  readonly capabilities?: Readonly<Record<string, unknown>>;
}

/**
 * Calls a driver. Undefined when it does not know the command, in which case the agent has a way of its own.
 *
 * @throws VolumeProblem when it fails, or says nothing that can be understood
 */
export async function callDriver(
  path: string,
  words: readonly string[],
  run: RunProgram,
): Promise<DriverAnswer | undefined> {
  const [command = ''] = words;
  let output: string;
  let failure: ProgramError | undefined;
  try {
    output = (await run(path, words)).toString('utf8');
  } catch (error) {
    if (!(error instanceof ProgramError)) throw error;
    failure = error;
    output = error.stdout;
  }
  const answer = parseAnswer(output);
  if (answer?.status === 'Not supported') return undefined;
  if (answer?.status === 'Success' && failure === undefined) return answer;
  const said = answer?.message ?? failure?.message ?? `unexpected output ${JSON.stringify(output.slice(0, 200))}`;
  throw new VolumeProblem(`volume plugin ${path} ${command}: ${said}`);
}

function parseAnswer(output: string): DriverAnswer | undefined {
  let value: unknown;
  try {
    value = JSON.parse(output);
  } catch {
    return undefined;
  }
  if (!isRecord(value)) return undefined;
  const { status, message, device, volumeName, attached, capabilities } = value;
  if (status !== 'Success' && status !== 'Failure' && status !== 'Not supported') return undefined;
  return {
    status,
    ...(typeof message === 'string' && message !== '' ? { message } : {}),
    ...(typeof device === 'string' ? { device } : {}),
    ...(typeof volumeName === 'string' ? { volumeName } : {}),
    ...(typeof attached === 'boolean' ? { attached } : {}),
    ...(isRecord(capabilities) ? { capabilities } : {}),
  };
}
