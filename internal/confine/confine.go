// Package confine runs a program that reads a stranger's file with little to do harm with: bounded memory and CPU
// time, few open files, no writing of files and no network.
//
// Limits hold for the program from its first instruction. To set them, a process starts this same binary once
// more, under another name; its init function sets the limits and then executes the program in its place.
package confine

import "time"

// Limits are what a confined program may use.
type Limits struct {
	Memory uint64        // bytes of address space; zero: any amount
	CPU    time.Duration // in whole seconds; zero: any time
}

// Failed is the exit status of a command whose limits could not be set. The reason is on standard error.
const Failed = 125

// maxFiles is how many files a confined program may have open: its input, its libraries while they are loaded.
const maxFiles = 64
