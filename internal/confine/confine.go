// Package confine runs a program on a stranger's file with bounded memory and CPU time, few open files, no writing of files
// and no network.
//
// Invariant: the limits hold from the first instruction of the program. A process starts this same binary again under
// another name; its init function sets the limits and executes the program in its place.
package confine

import "time"

// Limits are the limits of a confined program.
type Limits struct {
	Memory uint64        // bytes of address space; zero: unlimited
	CPU    time.Duration // in whole seconds; zero: unlimited
}

// Failed is the exit status if the limits could not be set. The reason is on stderr.
const Failed = 125

// maxFiles includes the input and the libraries while they are loaded.
const maxFiles = 64
