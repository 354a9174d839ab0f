/** The name of the agent in paths, events and the output of the command. */
export const agentName = 'keelson-agent';

export const defaultRootDir = `/var/lib/${agentName}`;
