package main

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// The messages of evaluator.proto: two fields each, read and written by hand
// instead of by code that would have to be generated.
type request struct {
	resourceList []byte
	image        string
}

type response struct {
	resourceList []byte
	log          []byte
}

var service = grpc.ServiceDesc{
	ServiceName: "evaluator.FunctionEvaluator",
	HandlerType: (*any)(nil),
	Methods:     []grpc.MethodDesc{{MethodName: "EvaluateFunction", Handler: handle}},
}

func handle(server any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	in := new(request)
	if err := decode(in); err != nil {
		return nil, err
	}
	return server.(entrypoint).evaluate(in)
}

// Ours, and for the health service what the library does.
type codec struct{}

func (codec) Name() string { return "proto" }

func (codec) Marshal(message any) ([]byte, error) {
	switch message := message.(type) {
	case *response:
		data := protowire.AppendTag(nil, 1, protowire.BytesType)
		data = protowire.AppendBytes(data, message.resourceList)
		data = protowire.AppendTag(data, 2, protowire.BytesType)
		return protowire.AppendBytes(data, message.log), nil
	case proto.Message:
		return proto.Marshal(message)
	}
	return nil, fmt.Errorf("no message: %T", message)
}

func (codec) Unmarshal(data []byte, message any) error {
	switch message := message.(type) {
	case *request:
		return message.read(data)
	case proto.Message:
		return proto.Unmarshal(data, message)
	}
	return fmt.Errorf("no message: %T", message)
}

func (r *request) read(data []byte) error {
	for len(data) > 0 {
		number, kind, length := protowire.ConsumeTag(data)
		if length < 0 {
			return protowire.ParseError(length)
		}
		data = data[length:]
		var value []byte
		if kind == protowire.BytesType {
			value, length = protowire.ConsumeBytes(data)
		} else {
			length = protowire.ConsumeFieldValue(number, kind, data)
		}
		if length < 0 {
			return protowire.ParseError(length)
		}
		data = data[length:]
		switch number {
		case 1:
			r.resourceList = value
		case 2:
			r.image = string(value)
		}
	}
	return nil
}
