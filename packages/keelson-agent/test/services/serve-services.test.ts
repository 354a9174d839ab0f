import { type AgentConfig, UsageError } from '@keelson/agent';
import test from 'ava';
import { isServiceProxyOn } from '../../src/services/serve-services.ts';

type Config = Pick<AgentConfig, 'api' | 'sources'>;

const sources = { runOnce: false } as AgentConfig['sources'];
const api = { clusterconfig: '/c', bootstrap: undefined } as AgentConfig['api'];
const given: Config = { api, sources };
const joined: Config = { api: { ...api, bootstrap: '/b' } as AgentConfig['api'], sources };
const alone: Config = { api: undefined, sources };

const cases: readonly (readonly [title: string, config: Config, value: string | undefined, on: boolean])[] = [
  ['an agent that joined', joined, undefined, true],
  ['an agent that joined, with an empty variable', joined, '', true],
  ['an agent that joined, with off', joined, 'off', false],
  ['an agent that joined and runs once', { ...joined, sources: { ...sources, runOnce: true } }, undefined, false],
  ['an agent with given credentials', given, undefined, false],
  ['an agent with given credentials, with on', given, 'on', true],
  ['an agent without an API server', alone, undefined, false],
];

for (const [title, config, serviceProxy, on] of cases) {
  test(`${title} ${on ? 'serves' : 'does not serve'} services`, (t) => {
    t.is(isServiceProxyOn(config, { serviceProxy }), on);
  });
}

test('invalid values, and "on" without an API server, are errors that name the variable', (t) => {
  t.throws(() => isServiceProxyOn(joined, { serviceProxy: 'true' }), {
    instanceOf: UsageError,
    message: 'KEELSON_AGENT_SERVICE_PROXY must be "on" or "off", not "true"',
  });
  t.throws(() => isServiceProxyOn(alone, { serviceProxy: 'on' }), {
    instanceOf: UsageError,
    message: 'KEELSON_AGENT_SERVICE_PROXY=on requires the option --clusterconfig',
  });
});
