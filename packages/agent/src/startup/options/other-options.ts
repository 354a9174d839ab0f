import { defaultRootDir } from '../../base/agent-name.ts';
import { mapStringBool } from './list-types.ts';
import { option } from './option.ts';
import { bool, float, int32, text, version } from './scalar-types.ts';

const none = { shownDefault: 'none' };

export const otherOptions = [
  option('config', text, '', 'Configuration file to begin with; needs the gate AgentConfigFile.', {
    ...none,
  }),
  option(
    'dynamic-config-dir',
    text,
    '',
    'Directory of downloaded configurations and their health; turns them on; needs the gate DynamicAgentConfig.',
    none,
  ),
  option('root-dir', text, defaultRootDir, "Directory of the agent's files, such as mounted volumes."),
  option('seccomp-profile-root', text, `${defaultRootDir}/seccomp`, 'Directory of seccomp profiles.'),
  option('lock-file', text, '', 'File that is locked while the agent runs; it waits until nobody else has it.', none),
  option('exit-on-lock-contention', bool, false, 'Ends when somebody else wants the lock file.'),
  option('event-qps', int32, 5, 'Events created per second in the long run; 0 is no limit.'),
  option('event-burst', int32, 10, 'Events created at once after a pause; means nothing when --event-qps is 0.'),
  option(
    'chaos-chance',
    float,
    0,
    'Above 0: chance of made-up errors and delays of requests to the API server. For tests.',
    none,
  ),
  option(
    'really-crash-for-testing',
    bool,
    false,
    'An error that nobody caught ends the process, rather than being logged. For tests.',
  ),
  option(
    'feature-gates',
    mapStringBool,
    new Map() as ReadonlyMap<string, boolean>,
    'Turns features on or off, name=true or name=false.',
    {
      shownDefault: 'see feature gates',
    },
  ),
  option('version', version, 'none', 'Prints the version and ends; raw prints all there is to say about it.', none),
] as const;
