// A stand-in for the wrapper server of Porch's own function runner, written from
// what is known of its behaviour and with the gRPC library it uses: what our
// runner may meet in the pods of an installation that it takes over.
//
// It knows its own flags and dies of any other. It does not look at deadlines:
// what a caller has given up on runs to its end. Its errors are a code and a
// text, with nothing beside them. Health is SERVING whatever is asked for.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"os/exec"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// What the library takes where nobody says otherwise.
const usualLimit = 4 * 1024 * 1024

func main() {
	port := flag.Int("port", 9446, "the port of the service")
	limit := flag.Int("max-request-body-size", usualLimit, "the largest message, in bytes")
	flag.Int("verbosity", 2, "how much is logged")
	flag.Parse()
	if flag.NArg() == 0 {
		log.Fatal("no entrypoint")
	}
	listener, err := net.Listen("tcp", fmt.Sprintf(":%d", *port))
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer(
		grpc.ForceServerCodec(codec{}), grpc.MaxRecvMsgSize(*limit), grpc.MaxSendMsgSize(*limit))
	server.RegisterService(&service, entrypoint(flag.Args()))
	grpc_health_v1.RegisterHealthServer(server, health{})
	log.Printf("listening on %v for %v", listener.Addr(), flag.Args())
	log.Fatal(server.Serve(listener))
}

// The function of the image: a program and its arguments.
type entrypoint []string

func (e entrypoint) evaluate(in *request) (*response, error) {
	var stdout, stderr bytes.Buffer
	command := exec.Command(e[0], e[1:]...)
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(in.resourceList), &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return nil, status.Errorf(codes.Internal,
			"failed to evaluate function %q with structured results: %v and stderr: %v", in.image, results(stdout.String()), stderr.String())
	case err != nil:
		return nil, status.Errorf(codes.Internal, "Failed to execute function %q: %s (%s)", in.image, err, stderr.String())
	}
	return &response{resourceList: stdout.Bytes(), log: stderr.Bytes()}, nil
}

// The results of the test function, which writes one of them. That is all there is to read here.
func results(output string) string {
	for _, line := range strings.Split(output, "\n") {
		if _, message, found := strings.Cut(line, "message: "); found {
			return "[error]: " + strings.Trim(message, "\"")
		}
	}
	return ""
}

type health struct {
	grpc_health_v1.UnimplementedHealthServer
}

func (health) Check(context.Context, *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	return &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVING}, nil
}
